/** So many are remembered at least, and twice as many at most. */
const CAPACITY = 1 << 15;
const SLOTS = 1 << 18;
/** A value stands in one of so many slots from its own on. With a quarter of all in use they are never all taken, but for a chance of 10⁻⁹. */
const WINDOW = 16;
const HEADER_BYTES = 8;
/** Of 16 bits; 0 is that of a slot that was never used. */
const EPOCHS = 0xffff;

/**
 * Random values that must not come twice, as all threads of the process remember them. A slot has 48 bits of a value and the
 * epoch in which it came; an epoch takes `CAPACITY` of them, and what is older than the one before means nothing. So nothing is
 * ever cleared, no thread waits for another, and one that ends in the middle leaves nothing behind.
 */
export class SharedSalts {
  readonly memory: SharedArrayBuffer;
  readonly #count: Int32Array;
  readonly #slots: BigUint64Array;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(HEADER_BYTES + SLOTS * 8)) {
    this.memory = memory;
    this.#count = new Int32Array(memory, 0, 1);
    this.#slots = new BigUint64Array(memory, HEADER_BYTES, SLOTS);
  }

  /** Remembers a value of at least 8 bytes; false where it was known already. */
  add(value: Uint8Array): boolean {
    const view = new DataView(value.buffer, value.byteOffset, 8);
    const start = view.getUint32(0) >>> 14;
    const key = (BigInt(view.getUint16(2)) << 48n) | (BigInt(view.getUint32(4)) << 16n);
    const number = Atomics.load(this.#count, 0) >>> 0;
    const epoch = (Math.floor(number / CAPACITY) % EPOCHS) + 1;
    for (;;) {
      const seen = this.#look(start, key, epoch);
      if (seen === null) return false;
      const [at, before] = seen;
      // Another thread may have taken it meanwhile: then all is looked at again.
      if (Atomics.compareExchange(this.#slots, at, before, key | BigInt(epoch)) !== before) continue;
      Atomics.add(this.#count, 0, 1);
      return true;
    }
  }

  /** The slot to take, with what is in it: the oldest one. Null: the value is known. */
  #look(start: number, key: bigint, epoch: number): readonly [at: number, before: bigint] | null {
    let best: readonly [number, bigint] = [start, 0n];
    let oldest = -1;
    for (let step = 0; step < WINDOW; step++) {
      const at = (start + step) % SLOTS;
      const slot = Atomics.load(this.#slots, at);
      const age = ageOf(slot, epoch);
      if (age <= 1 && slot >> 16n === key >> 16n) return null;
      if (Math.min(age, 2) > oldest) {
        oldest = Math.min(age, 2);
        best = [at, slot];
      }
    }
    return best;
  }
}

/** In epochs; one that another thread has begun already is as good as this one. */
function ageOf(slot: bigint, epoch: number): number {
  const own = Number(slot & 0xffffn);
  if (own === 0) return Infinity;
  const age = (epoch - own + EPOCHS) % EPOCHS;
  return age === EPOCHS - 1 ? 0 : age;
}
