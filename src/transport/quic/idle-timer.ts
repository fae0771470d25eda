/** When a connection has been silent for too long, and when a packet must keep it alive (RFC 9000 §10.1). Milliseconds. */
export class IdleTimer {
  readonly #keepAliveMs: number;
  /** 0: never. */
  #idleMs: number;
  #receivedAtMs: number;
  /** Of the first packet since then that asks for an answer. */
  #askedAtMs: number;

  /** `idleMs`, `keepAliveMs` 0: never. */
  constructor(idleMs: number, keepAliveMs: number, nowMs: number) {
    this.#idleMs = idleMs;
    this.#keepAliveMs = keepAliveMs;
    this.#receivedAtMs = this.#askedAtMs = nowMs;
  }

  onReceived(nowMs: number): void {
    this.#receivedAtMs = this.#askedAtMs = nowMs;
  }

  /** A packet that asks for an answer was sent; only the first since the last one that came counts. */
  onAsked(nowMs: number): void {
    if (this.#askedAtMs === this.#receivedAtMs) this.#askedAtMs = nowMs;
  }

  /** What the peer keeps to; the smaller of both holds. 0: it keeps to none. */
  limit(peerIdleMs: number): void {
    if (peerIdleMs > 0) this.#idleMs = this.#idleMs > 0 ? Math.min(this.#idleMs, peerIdleMs) : peerIdleMs;
  }

  /** Infinity: never. */
  idleAtMs(probeTimeoutMs: number): number {
    return this.#idleMs === 0 ? Infinity : this.#askedAtMs + Math.max(this.#idleMs, 3 * probeTimeoutMs);
  }

  /** Infinity: never. */
  get keepAliveAtMs(): number {
    if (this.#keepAliveMs === 0) return Infinity;
    return Math.max(this.#askedAtMs, this.#receivedAtMs) + this.#keepAliveMs;
  }
}
