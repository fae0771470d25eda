/** What NewReno and Cubic have in common: slow start, one reduction a round trip, a rate that follows the window. */
import { type AckSample, type Congestion, initialWindow } from "./congestion.ts";

/** Faster than the window a round trip, so that pacing is not what limits (RFC 9002 §7.7). */
const PACING_GAIN = 1.25;
const SLOW_START_PACING_GAIN = 2;
const LEAST_PACKETS = 2;
/** 1,000 full datagrams a millisecond of a long way are more than any peer lets be in flight. */
const MOST_WINDOW_BYTES = 64 * 1024 * 1024;

export abstract class LossBased implements Congestion {
  protected datagramBytes = 1200;
  protected window = initialWindow(1200);
  protected threshold = Infinity;
  #recoverySinceMs = -1;
  #smoothedRttMs = 0;

  get windowBytes(): number {
    return this.window;
  }

  get pacingRate(): number {
    if (this.#smoothedRttMs === 0) return Infinity;
    const gain = this.window < this.threshold ? SLOW_START_PACING_GAIN : PACING_GAIN;
    return (gain * this.window) / Math.max(this.#smoothedRttMs, 0.1);
  }

  onSent(): void {}

  onAck(sample: AckSample): void {
    this.#smoothedRttMs = sample.smoothedRttMs;
    if (sample.newestSentAtMs <= this.#recoverySinceMs || sample.isWindowUnused) return;
    if (this.window < this.threshold) this.window += sample.ackedBytes;
    else this.avoid(sample);
    this.window = Math.min(this.window, MOST_WINDOW_BYTES);
  }

  onLost(nowMs: number, _bytes: number, newestSentAtMs: number, isPersistent: boolean): void {
    this.onMarked(nowMs, newestSentAtMs);
    if (isPersistent) this.window = LEAST_PACKETS * this.datagramBytes;
  }

  onMarked(nowMs: number, newestSentAtMs: number): void {
    if (newestSentAtMs <= this.#recoverySinceMs) return;
    this.#recoverySinceMs = nowMs;
    this.reduce(nowMs);
    this.window = Math.max(this.window, LEAST_PACKETS * this.datagramBytes);
    this.threshold = this.window;
  }

  setDatagramBytes(bytes: number): void {
    this.datagramBytes = bytes;
  }

  /** Grows the window behind slow start. */
  protected abstract avoid(sample: AckSample): void;
  /** Shrinks it, at most once a round trip. */
  protected abstract reduce(nowMs: number): void;
}
