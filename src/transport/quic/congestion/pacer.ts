/** Spreads packets over time: a bucket that fills at the rate and holds a short burst. */

const BURST_PACKETS = 10;
const BURST_MS = 4;
/** What a process that was woken too late may send at once for the time that it was late: one run of datagrams. */
const LATE_PACKETS = 64;
/** Timers know no less. */
const LEAST_WAIT_MS = 1;

export class Pacer {
  #tokens = 0;
  /** Up to which the bucket was filled. */
  #atMs = -Infinity;
  /** When what was held back may go; Infinity: nothing was. */
  #heldUntilMs = Infinity;

  /** How long until a datagram may go; 0: now. `rate`: bytes a millisecond. */
  waitMs(nowMs: number, rate: number, datagramBytes: number): number {
    if (rate === Infinity) return 0;
    if (nowMs > this.#atMs) this.#fill(nowMs, rate, datagramBytes);
    if (this.#tokens >= datagramBytes) return 0;
    const waitMs = Math.max(LEAST_WAIT_MS, (datagramBytes - this.#tokens) / rate);
    this.#heldUntilMs = nowMs + waitMs;
    return waitMs;
  }

  #fill(nowMs: number, rate: number, datagramBytes: number): void {
    const lateMs = Math.max(0, nowMs - this.#heldUntilMs);
    const late = Math.min(lateMs * rate, LATE_PACKETS * datagramBytes);
    const most = Math.max(BURST_PACKETS * datagramBytes, BURST_MS * rate, late);
    this.#tokens = Math.min(most, this.#tokens + rate * (nowMs - this.#atMs));
    this.#atMs = nowMs;
    this.#heldUntilMs = Infinity;
  }

  onSent(bytes: number): void {
    this.#tokens -= bytes;
  }
}
