/** Memory is given back once it is empty, where it had to be much. */
const MOST_KEPT_BYTES = 512 * 1024;
const LEAST_BYTES = 4 * 1024;
/** More than this is given back, too, where less than a quarter of it is in use: what waits is counted, and not what it lies in. */
const MOST_SPARSE_BYTES = 32 * 1024;

/** Of a thread: in bulk a store gives its memory back, and wants as much, in every turn. */
const spare: Uint8Array<ArrayBuffer>[] = [];
const MOST_SPARE = 4;

function memoryOf(size: number): Uint8Array<ArrayBuffer> {
  const at = spare.findIndex(({ length }) => length >= size && length <= 4 * size);
  return spare.splice(at, at < 0 ? 0 : 1)[0] ?? new Uint8Array(size);
}

function giveBack(memory: Uint8Array<ArrayBuffer>): void {
  if (memory.length <= MOST_KEPT_BYTES && spare.length < MOST_SPARE) spare.push(memory);
}

/** Bytes that wait, in the order in which they came; in one piece of memory, which grows where it has to. */
export class ByteStore {
  #bytes = new Uint8Array(0);
  #from = 0;
  #to = 0;

  get size(): number {
    return this.#to - this.#from;
  }

  /** Those of `bytes` between the two indices. */
  push(bytes: Uint8Array, from = 0, to = bytes.length): void {
    const size = to - from;
    if (this.#to + size > this.#bytes.length) this.#makeRoom(size);
    this.#bytes.set(bytes.subarray(from, to), this.#to);
    this.#to += size;
  }

  #makeRoom(size: number): void {
    const present = this.#bytes.subarray(this.#from, this.#to);
    const needed = present.length + size;
    // Moved within the same memory only where that is rare.
    if (2 * needed > this.#bytes.length) this.#bytes = memoryOf(Math.max(LEAST_BYTES, 2 * needed));
    this.#bytes.set(present);
    this.#from = 0;
    this.#to = present.length;
  }

  /** At most so many go to `out`, from `at` on: how many. */
  take(out: Uint8Array, most: number, at = 0): number {
    const size = Math.min(most, this.size);
    out.set(this.#bytes.subarray(this.#from, this.#from + size), at);
    return this.skip(size);
  }

  /** A copy of the first ones, at most so many. */
  peek(most: number): Uint8Array {
    return this.#bytes.slice(this.#from, this.#from + Math.min(most, this.size));
  }

  /** At most so many are thrown away: how many. */
  skip(most: number): number {
    const size = Math.min(most, this.size);
    this.#from += size;
    if (this.#from === this.#to) this.#empty();
    else if (this.#bytes.length > MOST_SPARSE_BYTES && 4 * this.size < this.#bytes.length) this.#shrink();
    return size;
  }

  #shrink(): void {
    const before = this.#bytes;
    this.#bytes = before.slice(this.#from, this.#to);
    giveBack(before);
    this.#from = 0;
    this.#to = this.#bytes.length;
  }

  #empty(): void {
    this.#from = this.#to = 0;
    if (this.#bytes.length > MOST_KEPT_BYTES) this.#bytes = new Uint8Array(0);
  }
}
