/**
 * Options of every server of `node:http2`. Where a session ends because the runtime has refused more streams than it may, the
 * runtime's own check of the session's memory can fail when it is collected, and ends the process: so it may refuse without an
 * end. Streams beyond `maxConcurrentStreams` are not refused by it but by the protocol, whose bound of such frames ends a session
 * in order; and it need not refuse for the memory of heads, where these are bounded by `maxHeaderListSize`.
 */
export const SESSION_BOUNDS = { maxSessionRejectedStreams: 2 ** 31 - 1, maxSessionMemory: 256 } as const;
