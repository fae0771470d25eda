/** What arrived at one end of a flow: how much since the first byte, and its fullest 100 ms. */
const WINDOW_MS = 100;

export class Receiver {
  readonly #bins: Float64Array;
  #firstMs = -1;
  readonly #spanMs: number;
  bytes = 0;

  /** Bytes count for `spanMs` from the first one on. */
  constructor(spanMs: number) {
    this.#spanMs = spanMs;
    this.#bins = new Float64Array(spanMs);
  }

  get started(): boolean {
    return this.#firstMs >= 0;
  }

  add(bytes: number): void {
    const nowMs = performance.now();
    if (this.#firstMs < 0) this.#firstMs = nowMs;
    const at = Math.trunc(nowMs - this.#firstMs);
    if (at >= this.#spanMs) return;
    this.#bins[at] = (this.#bins[at] as number) + bytes;
    this.bytes += bytes;
  }

  get bitsPerSecond(): number {
    return (this.bytes * 8000) / this.#spanMs;
  }

  /** The fullest 100 ms as a rate. */
  get peakBitsPerSecond(): number {
    let most = 0;
    let sum = 0;
    for (let at = 0; at < this.#bins.length; at++) {
      sum += (this.#bins[at] as number) - (this.#bins[at - WINDOW_MS] ?? 0);
      most = Math.max(most, sum);
    }
    return (most * 8000) / WINDOW_MS;
  }
}

/** 1 where all shares are equal. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  return sum ** 2 / (shares.length * shares.reduce((a, b) => a + b * b, 0));
}
