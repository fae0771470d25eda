/** Packets that come in parts. Nothing of them is authenticated: anybody can send what looks like a part. */

/** What is not whole by then is dropped, as are further messages of a source. */
const MOST_AGE_MS = 8_000;
const MOST_OF_A_SOURCE = 8;
/** Of all sources; beyond it the oldest message is dropped. */
const MOST_MESSAGES = 4096;
const MOST_BYTES = 4 * 1024 * 1024;

export interface Part {
  /** A number of the sender's, which comes round. */
  readonly message: number;
  readonly index: number;
  readonly count: number;
}

interface Message {
  readonly source: string;
  readonly atMs: number;
  readonly pieces: (Uint8Array | undefined)[];
  missing: number;
  bytes: number;
}

export class GeckoParts {
  /** The oldest first. */
  readonly #messages = new Map<string, Message>();
  readonly #countOf = new Map<string, number>();
  #bytes = 0;

  /** Messages that are not whole. */
  get size(): number {
    return this.#messages.size;
  }

  /** Copies the piece. Answers with the packet where it is the last piece; null: it is not, or is dropped. */
  take(source: string, { message, index, count }: Part, piece: Uint8Array, nowMs: number): Uint8Array | null {
    this.#dropOld(nowMs);
    const key = `${message} ${source}`;
    const known = this.#messages.get(key) ?? this.#begin(key, source, count, nowMs);
    if (known === null || known.pieces.length !== count || known.pieces[index] !== undefined) return null;
    known.pieces[index] = new Uint8Array(piece);
    known.missing--;
    known.bytes += piece.length;
    this.#bytes += piece.length;
    if (known.missing > 0) return null;
    this.#drop(key, known);
    return Buffer.concat(known.pieces.filter((each) => each !== undefined));
  }

  #begin(key: string, source: string, count: number, nowMs: number): Message | null {
    const others = this.#countOf.get(source) ?? 0;
    if (others >= MOST_OF_A_SOURCE) return null;
    const made: Message = {
      source,
      atMs: nowMs,
      pieces: Array.from({ length: count }),
      missing: count,
      bytes: 0,
    };
    this.#messages.set(key, made);
    this.#countOf.set(source, others + 1);
    return made;
  }

  #dropOld(nowMs: number): void {
    for (const [key, message] of this.#messages) {
      const isFull = this.#messages.size >= MOST_MESSAGES || this.#bytes > MOST_BYTES;
      if (!isFull && nowMs - message.atMs <= MOST_AGE_MS) return;
      this.#drop(key, message);
    }
  }

  #drop(key: string, { source, bytes }: Message): void {
    this.#messages.delete(key);
    this.#bytes -= bytes;
    const left = (this.#countOf.get(source) ?? 1) - 1;
    if (left === 0) this.#countOf.delete(source);
    else this.#countOf.set(source, left);
  }
}
