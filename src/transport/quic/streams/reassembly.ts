/** Puts bytes that come in any order, cut anyhow and more than once, in order. */
import { itemAt } from "#lib/at.ts";
import { INTERNAL_ERROR, QuicFault } from "#transport/quic/fault.ts";

/** More pieces that wait are an attack, or more than any window of ours lets be on its way in full packets. */
const MOST_PIECES = 16_384;

interface Piece {
  readonly from: number;
  readonly bytes: Uint8Array;
}

export class Reassembly {
  /** Of the next byte that is in order. */
  next = 0;
  /** In ascending order, apart from each other, all behind `next`. */
  readonly #waiting: Piece[] = [];

  /** Bytes in order are lent to `on`, others are copied. Throws `QuicFault` where too many pieces wait. */
  add(offset: number, bytes: Uint8Array, on: (bytes: Uint8Array) => void): void {
    const end = offset + bytes.length;
    if (end <= this.next) return;
    if (offset > this.next) return this.#keep(offset, bytes);
    const fresh = this.next - offset;
    this.next = end;
    on(fresh === 0 ? bytes : bytes.subarray(fresh));
    this.#release(on);
  }

  #release(on: (bytes: Uint8Array) => void): void {
    let count = 0;
    for (; count < this.#waiting.length; count++) {
      const { from, bytes } = itemAt(this.#waiting, count);
      if (from > this.next) break;
      const known = this.next - from;
      if (known >= bytes.length) continue;
      this.next = from + bytes.length;
      on(bytes.subarray(known));
    }
    if (count > 0) this.#waiting.splice(0, count);
  }

  /** Only what no other piece has: memory is what the window allows. */
  #keep(offset: number, bytes: Uint8Array): void {
    const waiting = this.#waiting;
    let place = this.#placeOf(offset);
    let from = offset;
    const end = offset + bytes.length;
    const before = waiting[place - 1];
    if (before !== undefined) from = Math.max(from, before.from + before.bytes.length);
    while (from < end) {
      const after = waiting[place];
      const to = after === undefined ? end : Math.min(end, after.from);
      if (to > from) {
        waiting.splice(place, 0, {
          from,
          bytes: new Uint8Array(bytes.subarray(from - offset, to - offset)),
        });
        place++;
      }
      if (after === undefined) break;
      from = Math.max(to, after.from + after.bytes.length);
      place++;
    }
    if (waiting.length > MOST_PIECES) throw new QuicFault(INTERNAL_ERROR, "too many pieces out of order");
  }

  /** The place of the first piece that begins behind `offset`. */
  #placeOf(offset: number): number {
    let [low, high] = [0, this.#waiting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (itemAt(this.#waiting, middle).from > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  clear(): void {
    this.#waiting.length = 0;
  }
}
