/** Spreads packets over time: a bucket that fills at the rate and holds a short burst. */

const BURST_PACKETS = 10;
const BURST_MS = 4;
/** Timers know no less. */
const LEAST_WAIT_MS = 1;

export class Pacer {
  #tokens = Infinity;
  #atMs = 0;

  /** How long until a datagram may go; 0: now. `rate`: bytes a millisecond. */
  waitMs(nowMs: number, rate: number, datagramBytes: number): number {
    if (rate === Infinity) return 0;
    const most = Math.max(BURST_PACKETS * datagramBytes, BURST_MS * rate);
    this.#tokens = Math.min(most, this.#tokens + rate * Math.max(0, nowMs - this.#atMs));
    this.#atMs = nowMs;
    return this.#tokens >= datagramBytes ? 0 : Math.max(LEAST_WAIT_MS, (datagramBytes - this.#tokens) / rate);
  }

  onSent(bytes: number): void {
    this.#tokens -= bytes;
  }
}
