const EMPTY = Buffer.alloc(0);

/**
 * Bytes that have arrived and wait to be understood. Pieces are kept as they came and joined only when a field spans
 * them, so a peer that sends single bytes does not make every arrival copy all earlier ones. It has no bound of its
 * own: its owner takes out all it can after each `push` and refuses messages longer than its protocol allows.
 */
export class ByteQueue {
  #pieces: Buffer[] = [];
  /** Index of the first piece that is left; taken pieces are cut off now and then. */
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(bytes);
    this.#length += bytes.length;
  }

  /** The next `size` bytes, which stay; null where there are fewer. The result may share memory with what was pushed. */
  peek(size: number): Buffer | null {
    if (size > this.#length) return null;
    if (size === 0) return EMPTY;
    let first = this.#pieces[this.#head] as Buffer;
    if (first.length < size) first = this.#join(size);
    return first.length === size ? first : first.subarray(0, size);
  }

  /** The next `size` bytes, removed; null where there are fewer. */
  take(size: number): Buffer | null {
    const bytes = this.peek(size);
    if (bytes !== null) this.skip(size);
    return bytes;
  }

  /** Everything, removed. */
  takeAll(): Buffer {
    return this.take(this.#length) as Buffer;
  }

  /** Removes up to `size` bytes. */
  skip(size: number): void {
    let left = Math.min(size, this.#length);
    this.#length -= left;
    while (left > 0) {
      const first = this.#pieces[this.#head] as Buffer;
      if (first.length > left) {
        this.#pieces[this.#head] = first.subarray(left);
        return;
      }
      left -= first.length;
      this.#dropFirst();
    }
  }

  /** The next bytes that lie in one piece, at most `limit`, removed; empty where there are none. Never copies. */
  takeSome(limit: number): Buffer {
    const first = this.#pieces[this.#head];
    return first === undefined ? EMPTY : (this.take(Math.min(first.length, limit)) as Buffer);
  }

  #dropFirst(): void {
    this.#pieces[this.#head] = EMPTY; // let go of the memory
    this.#head++;
    if (this.#head === this.#pieces.length) {
      this.#pieces.length = 0;
      this.#head = 0;
    } else if (this.#head >= 1024) {
      this.#pieces = this.#pieces.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Makes the first piece exactly `size` long; of the last piece that it spans only the needed part is copied. */
  #join(size: number): Buffer {
    const joined = Buffer.allocUnsafe(size);
    let got = 0;
    let at = this.#head;
    for (; got < size; at++) {
      const piece = this.#pieces[at] as Buffer;
      const copied = piece.copy(joined, got);
      got += copied;
      if (copied < piece.length) this.#pieces[at--] = piece.subarray(copied);
    }
    this.#pieces[--at] = joined;
    if (at > 0) this.#pieces.splice(0, at);
    this.#head = 0;
    return joined;
  }
}
