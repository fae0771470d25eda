/**
 * The fixed rate of hysteria2: as many bytes as the peer says that it can take, and more by what is lost on the way. Loss does
 * not slow it down.
 */
import type { AckSample, Congestion } from "./congestion.ts";
import { float64At } from "#lib/at.ts";

const SLOTS = 5;
const SLOT_MS = 1000;
/** With fewer samples nothing is said about loss. */
const LEAST_SAMPLES = 50;
const LEAST_ACKED_SHARE = 0.8;
/** The window holds so many round trips of the rate. */
const ROUND_TRIPS = 2;
const FIRST_WINDOW_BYTES = 10_240;

export class Brutal implements Congestion {
  readonly #bytesPerMs: number;
  readonly #compensates: boolean;
  // Of the last seconds, a slot each: which second, and the packets' bytes.
  readonly #seconds = new Float64Array(SLOTS).fill(-SLOTS);
  readonly #acked = new Float64Array(SLOTS);
  readonly #lost = new Float64Array(SLOTS);
  #ackedShare = 1;
  #smoothedRttMs = 0;
  #datagramBytes = 1200;

  /** `compensates` false: nothing is added for what is lost. */
  constructor(bytesPerSecond: number, compensates = true) {
    this.#bytesPerMs = bytesPerSecond / 1000;
    this.#compensates = compensates;
  }

  get windowBytes(): number {
    const window = ROUND_TRIPS * this.#smoothedRttMs * this.pacingRate;
    return Math.max(window, FIRST_WINDOW_BYTES, 2 * this.#datagramBytes);
  }

  get pacingRate(): number {
    return this.#bytesPerMs / this.#ackedShare;
  }

  onSent(): void {}

  onAck({ nowMs, ackedBytes, smoothedRttMs }: AckSample): void {
    this.#smoothedRttMs = smoothedRttMs;
    this.#count(nowMs, this.#acked, ackedBytes);
  }

  onLost(nowMs: number, bytes: number): void {
    this.#count(nowMs, this.#lost, bytes);
  }

  /** The rate is what was agreed on: as loss, marks do not change it. */
  onMarked(): void {}

  setDatagramBytes(bytes: number): void {
    this.#datagramBytes = bytes;
  }

  #count(nowMs: number, column: Float64Array, bytes: number): void {
    const second = Math.floor(nowMs / SLOT_MS);
    const slot = second % SLOTS;
    if (this.#seconds[slot] !== second) {
      this.#seconds[slot] = second;
      this.#acked[slot] = this.#lost[slot] = 0;
    }
    column[slot] = float64At(column, slot) + bytes;
    if (this.#compensates) this.#ackedShare = this.#measure(second);
  }

  #measure(second: number): number {
    let acked = 0;
    let lost = 0;
    for (let slot = 0; slot < SLOTS; slot++) {
      if (float64At(this.#seconds, slot) <= second - SLOTS) continue;
      acked += float64At(this.#acked, slot);
      lost += float64At(this.#lost, slot);
    }
    const total = acked + lost;
    if (total < LEAST_SAMPLES * this.#datagramBytes) return 1;
    return Math.max(LEAST_ACKED_SHARE, acked / total);
  }
}
