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
    return size > this.#length ? null : this.peekUpTo(size);
  }

  /** As `peek`, of what there is where that is less. */
  peekUpTo(limit: number): Buffer {
    const size = Math.min(limit, this.#length);
    if (size === 0) return EMPTY;
    let first = pieceAt(this.#pieces, this.#head);
    if (first.length < size) first = this.#join(size);
    return first.length === size ? first : first.subarray(0, size);
  }

  /** The next `size` bytes, removed; null where there are fewer. */
  take(size: number): Buffer | null {
    const bytes = this.peek(size);
    if (bytes !== null) this.skip(size);
    return bytes;
  }

  /** As `take`, of what there is where that is less. */
  takeUpTo(limit: number): Buffer {
    const bytes = this.peekUpTo(limit);
    this.skip(bytes.length);
    return bytes;
  }

  /** A piece costs more than its bytes, and peers choose how small pieces are: many become one. */
  joinBeyond(mostPieces: number): void {
    if (this.#pieces.length - this.#head > mostPieces) this.#join(this.#length);
  }

  /** Everything, removed. */
  takeAll(): Buffer {
    return this.takeUpTo(this.#length);
  }

  /** Removes up to `size` bytes. */
  skip(size: number): void {
    let left = Math.min(size, this.#length);
    this.#length -= left;
    while (left > 0) {
      const first = pieceAt(this.#pieces, this.#head);
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
    return first === undefined ? EMPTY : this.takeUpTo(Math.min(first.length, limit));
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
      const piece = pieceAt(this.#pieces, at);
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

/** A read of its own, because it runs for every chunk; see `at.ts`. */
function pieceAt(pieces: readonly Buffer[], at: number): Buffer {
  return pieces[at] as Buffer;
}
