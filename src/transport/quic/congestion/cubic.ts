/** CUBIC (RFC 9438). Windows in bytes here, in packets there; times in seconds within the formulas. */
import type { AckSample } from "./congestion.ts";
import { LossBased } from "./loss-based.ts";

const C = 0.4;
const BETA = 0.7;
/** How the window of Reno would grow after such a reduction (§4.3). */
const RENO_ALPHA = (3 * (1 - BETA)) / (1 + BETA);

export class Cubic extends LossBased {
  #largest = 0;
  /** Of the present growth; negative: none has begun. */
  #epochAtMs = -1;
  #secondsToLargest = 0;
  #renoWindow = 0;

  protected avoid({ nowMs, ackedBytes, smoothedRttMs }: AckSample): void {
    if (this.#epochAtMs < 0) this.#begin(nowMs);
    const size = this.datagramBytes;
    const seconds = (nowMs - this.#epochAtMs + smoothedRttMs) / 1000;
    const wanted = C * (seconds - this.#secondsToLargest) ** 3 * size + this.#largest;
    this.#renoWindow += (RENO_ALPHA * size * ackedBytes) / this.window;
    const target = Math.min(Math.max(wanted, this.window), 1.5 * this.window);
    this.window += ((target - this.window) * ackedBytes) / this.window;
    this.window = Math.max(this.window, this.#renoWindow);
  }

  #begin(nowMs: number): void {
    this.#epochAtMs = nowMs;
    this.#largest = Math.max(this.#largest, this.window);
    this.#secondsToLargest = Math.cbrt((this.#largest - this.window) / (C * this.datagramBytes));
    this.#renoWindow = this.window;
  }

  protected reduce(): void {
    const isShrinking = this.window < this.#largest; // another flow came: leave it room (fast convergence, §4.7)
    this.#largest = isShrinking ? (this.window * (1 + BETA)) / 2 : this.window;
    this.window *= BETA;
    this.#epochAtMs = -1;
  }
}
