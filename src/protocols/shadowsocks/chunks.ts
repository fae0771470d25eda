/**
 * The chunked stream of both editions: sealed length (2 + tag), sealed payload (n + tag), one nonce counter across
 * both, starting at 0 and growing after every seal and open.
 */
import { ProtocolError } from "#core/errors.ts";
import type { ByteQueue } from "#net/byte-queue.ts";
import { type Aead, incrementNonce, TAG_BYTES } from "#protocols/crypto/aead.ts";

export const LENGTH_BYTES = 2 + TAG_BYTES;
/** The older edition keeps the two top bits of the length zero. */
export const MAX_CHUNK = { sip004: 0x3fff, 2022: 0xffff } as const;

export class ChunkSealer {
  readonly #aead: Aead;
  readonly #nonce: Buffer;
  readonly #maxBytes: number;
  readonly #length = Buffer.alloc(2);

  constructor(aead: Aead, maxBytes: number) {
    this.#aead = aead;
    this.#nonce = Buffer.alloc(aead.nonceBytes);
    this.#maxBytes = maxBytes;
  }

  /** How many wire bytes `plainBytes` become. */
  sizeOf(plainBytes: number): number {
    return plainBytes + Math.ceil(plainBytes / this.#maxBytes) * (LENGTH_BYTES + TAG_BYTES);
  }

  /** Writes `plain` as chunks; answers with the offset behind them. */
  chunksInto(out: Buffer, at: number, plain: Buffer): number {
    let end = at;
    for (let from = 0; from < plain.length; from += this.#maxBytes) {
      const piece = plain.subarray(from, from + this.#maxBytes);
      this.#length.writeUInt16BE(piece.length);
      end = this.partInto(out, end, this.#length);
      end = this.partInto(out, end, piece);
    }
    return end;
  }

  /** Writes one sealed part: half a chunk, or a header. */
  partInto(out: Buffer, at: number, plain: Uint8Array): number {
    const end = this.#aead.sealInto(out, at, this.#nonce, plain);
    incrementNonce(this.#nonce);
    return end;
  }
}

export class ChunkOpener {
  readonly #aead: Aead;
  readonly #nonce: Buffer;
  readonly #maxBytes: number;
  /** Length of the payload that comes next; -1: a length comes next. */
  #payloadBytes = -1;

  constructor(aead: Aead, maxBytes: number) {
    this.#aead = aead;
    this.#nonce = Buffer.alloc(aead.nonceBytes);
    this.#maxBytes = maxBytes;
  }

  /** Opens one sealed part. Throws `ProtocolError` where the tag is wrong. */
  openPart(sealed: Buffer): Buffer {
    const plain = this.#aead.open(this.#nonce, sealed);
    if (plain === null) throw new ProtocolError("a sealed part does not authenticate");
    incrementNonce(this.#nonce);
    return plain;
  }

  /** The next whole payload; null: more bytes are needed. */
  nextChunk(arrived: ByteQueue): Buffer | null {
    if (this.#payloadBytes < 0) {
      const sealed = arrived.take(LENGTH_BYTES);
      if (sealed === null) return null;
      const length = this.openPart(sealed).readUInt16BE();
      if (length === 0 || length > this.#maxBytes)
        throw new ProtocolError(`a chunk of ${length} bytes, 1 to ${this.#maxBytes} are allowed`);
      this.#payloadBytes = length;
    }
    const sealed = arrived.take(this.#payloadBytes + TAG_BYTES);
    if (sealed === null) return null;
    this.#payloadBytes = -1;
    return this.openPart(sealed);
  }

  /** Is it between two chunks? */
  get idle(): boolean {
    return this.#payloadBytes < 0;
  }
}
