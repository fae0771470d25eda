/** Round trip times (RFC 9002 §5). Milliseconds. */

const INITIAL_RTT_MS = 333;
const GRANULARITY_MS = 1;

export class RttEstimate {
  latestMs = 0;
  minMs = Infinity;
  smoothedMs = INITIAL_RTT_MS;
  varianceMs = INITIAL_RTT_MS / 2;
  /** Infinity: there is none. */
  firstSampleAtMs = Infinity;

  get hasSample(): boolean {
    return this.firstSampleAtMs < Infinity;
  }

  /** Another way: what is known is of no use. */
  reset(): void {
    this.latestMs = 0;
    this.minMs = Infinity;
    this.smoothedMs = INITIAL_RTT_MS;
    this.varianceMs = INITIAL_RTT_MS / 2;
    this.firstSampleAtMs = Infinity;
  }

  /** Of a packet and its acknowledgement. `ackDelayMs`: how long the peer says that it has waited, bounded by the caller. */
  add(sentAtMs: number, nowMs: number, ackDelayMs: number): void {
    const sampleMs = nowMs - sentAtMs;
    this.latestMs = sampleMs;
    this.minMs = Math.min(this.minMs, sampleMs);
    if (!this.hasSample) {
      this.firstSampleAtMs = nowMs;
      this.smoothedMs = sampleMs;
      this.varianceMs = sampleMs / 2;
      return;
    }
    const adjusted = sampleMs - this.minMs >= ackDelayMs ? sampleMs - ackDelayMs : sampleMs;
    this.varianceMs = 0.75 * this.varianceMs + 0.25 * Math.abs(this.smoothedMs - adjusted);
    this.smoothedMs = 0.875 * this.smoothedMs + 0.125 * adjusted;
  }

  /** Without the peer's delay of acknowledgements. */
  get probeTimeoutMs(): number {
    return this.smoothedMs + Math.max(4 * this.varianceMs, GRANULARITY_MS);
  }

  /** A packet that is older than one acknowledged after it is lost by then. */
  get lossDelayMs(): number {
    return Math.max(GRANULARITY_MS, 1.125 * Math.max(this.smoothedMs, this.latestMs));
  }
}
