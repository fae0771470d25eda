/** How long silence may last, in ms. */

/** RFC 5382 REQ-5: an established connection is not given up before 2 hours and 4 minutes. */
export const TCP_IDLE_MS = 124 * 60_000;
/** Once one direction has ended. */
export const HALF_CLOSED_IDLE_MS = 60_000;
/** Of one path of a datagram session. */
export const UDP_IDLE_MS = 60_000;
/** Of a datagram session without any path. */
export const UDP_SESSION_IDLE_MS = 5 * 60_000;
