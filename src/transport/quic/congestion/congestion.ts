/** Congestion control (RFC 9002 §7): how much may be in flight, and how fast it is sent. Bytes and milliseconds. */

/** What one ACK frame told; the same object each time. */
export interface AckSample {
  nowMs: number;
  ackedBytes: number;
  /** In flight before and after. */
  priorInFlight: number;
  inFlight: number;
  /** When the newest of the packets was sent. */
  newestSentAtMs: number;
  /** All that was ever delivered, now and as the newest packet was sent. */
  delivered: number;
  priorDelivered: number;
  /** Bytes a millisecond between the two; 0: unknown. */
  deliveryRate: number;
  /** There was less to send than could have been. */
  isAppLimited: boolean;
  /** The window was not what held the sender back. */
  isWindowUnused: boolean;
  latestRttMs: number;
  minRttMs: number;
  smoothedRttMs: number;
}

export interface Congestion {
  readonly windowBytes: number;
  /** Bytes a millisecond; Infinity: not held back. */
  readonly pacingRate: number;
  onSent(nowMs: number, bytes: number, inFlight: number): void;
  onAck(sample: AckSample): void;
  /** `newestSentAtMs`: of what was lost. `isPersistent`: all of a long time was (RFC 9002 §7.6). */
  onLost(nowMs: number, bytes: number, newestSentAtMs: number, isPersistent: boolean): void;
  /** Packets have met congestion, and arrived (RFC 3168); `newestSentAtMs`: of those of the same acknowledgement. */
  onMarked(nowMs: number, newestSentAtMs: number): void;
  /** The size of full datagrams grew. */
  setDatagramBytes(bytes: number): void;
}

/** RFC 9002 §7.2. */
export function initialWindow(datagramBytes: number): number {
  return Math.min(10 * datagramBytes, Math.max(2 * datagramBytes, 14_720));
}
