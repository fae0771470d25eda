/**
 * The chunked stream of both editions: sealed length (2 + tag), sealed payload (n + tag), one nonce counter across
 * both, starting at 0 and growing after every seal and open.
 */
import { ProtocolError } from "#core/errors.ts";
import type { DetachedState } from "#core/wire-state.ts";
import type { ShadowsocksDetails } from "#core/wire-details.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import type { KeptAead } from "#platform/aead.ts";
import { incrementNonce, TAG_BYTES } from "#protocols/crypto/aead.ts";

export const LENGTH_BYTES = 2 + TAG_BYTES;
/** The older edition keeps the two top bits of the length zero. */
export const MAX_CHUNK = { sip004: 0x3fff, 2022: 0xffff } as const;

/** Owns its cipher. */
export class ChunkSealer implements Disposable {
  readonly #aead: KeptAead;
  readonly #nonce: Buffer;
  readonly #maxBytes: number;
  readonly #length = Buffer.alloc(2);

  constructor(aead: KeptAead, maxBytes: number) {
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

  get maxBytes(): number {
    return this.#maxBytes;
  }

  /** Sealed so far; 0 where there is no context to give. */
  get departingCount(): number {
    return countOf(this.#aead, this.#nonce);
  }

  /** The context is the caller's; nothing is sealed any more. */
  giveAway(): number {
    return Number(this.#aead.giveAway?.("sealing") ?? 0n);
  }

  /** Writes one sealed part: half a chunk, or a header. */
  partInto(out: Buffer, at: number, plain: Uint8Array): number {
    const end = this.#aead.sealInto(out, at, this.#nonce, plain);
    incrementNonce(this.#nonce);
    return end;
  }

  [Symbol.dispose](): void {
    this.#aead[Symbol.dispose]();
  }
}

/** Owns its cipher, and disposes of it where something does not authenticate. */
export class ChunkOpener implements Disposable {
  readonly #aead: KeptAead;
  readonly #nonce: Buffer;
  readonly #maxBytes: number;
  readonly #length = Buffer.alloc(2);
  /** Length of the payload that comes next; -1: a length comes next. */
  #payloadBytes = -1;

  constructor(aead: KeptAead, maxBytes: number) {
    this.#aead = aead;
    this.#nonce = Buffer.alloc(aead.nonceBytes);
    this.#maxBytes = maxBytes;
  }

  /** Opened so far; 0 where there is no context to give. */
  get departingCount(): number {
    return countOf(this.#aead, this.#nonce);
  }

  /** Length of the payload that comes next; -1: a length comes next. */
  get payloadBytes(): number {
    return this.#payloadBytes;
  }

  /** The context is the caller's; nothing is opened any more. */
  giveAway(): number {
    return Number(this.#aead.giveAway?.("opening") ?? 0n);
  }

  /** Opens one sealed part. Throws `ProtocolError` where the tag is wrong. */
  openPart(sealed: Buffer): Buffer {
    const plain = Buffer.allocUnsafe(Math.max(0, sealed.length - TAG_BYTES));
    this.#partInto(plain, 0, sealed);
    return plain;
  }

  /** The next whole payload; null: more bytes are needed. */
  nextChunk(arrived: ByteQueue): Buffer | null {
    return this.#payloadArrived(arrived) ? this.openPart(this.#takePayload(arrived)) : null;
  }

  /**
   * Opens all chunks that are whole, and emits them in one piece, which saves the receiver a write each. Those before a
   * faulty one are emitted before its error is thrown.
   */
  openChunks(arrived: ByteQueue, emit: (plain: Buffer) => void): void {
    if (!this.#payloadArrived(arrived)) return;
    const out = Buffer.allocUnsafe(arrived.length);
    let end = 0;
    try {
      do end = this.#partInto(out, end, this.#takePayload(arrived));
      while (this.#payloadArrived(arrived));
    } finally {
      if (end > 0) emit(out.subarray(0, end));
    }
  }

  /**
   * Reads the length where it is due. Is all of the payload there? It may be empty, which says nothing: Xray's client
   * (26.7) sends such a chunk behind the address when its own client has been silent for 100 ms.
   */
  #payloadArrived(arrived: ByteQueue): boolean {
    if (this.#payloadBytes < 0) {
      const sealed = arrived.take(LENGTH_BYTES);
      if (sealed === null) return false;
      this.#partInto(this.#length, 0, sealed);
      const length = this.#length.readUInt16BE();
      if (length > this.#maxBytes)
        throw new ProtocolError(`a chunk of ${length} bytes, ${this.#maxBytes} are allowed`);
      this.#payloadBytes = length;
    }
    return arrived.length >= this.#payloadBytes + TAG_BYTES;
  }

  #takePayload(arrived: ByteQueue): Buffer {
    const sealed = arrived.takeUpTo(this.#payloadBytes + TAG_BYTES);
    this.#payloadBytes = -1;
    return sealed;
  }

  #partInto(out: Buffer, at: number, sealed: Buffer): number {
    const end = this.#aead.openInto(out, at, this.#nonce, sealed);
    if (end < 0) {
      this[Symbol.dispose]();
      throw new ProtocolError("a sealed part does not authenticate");
    }
    incrementNonce(this.#nonce);
    return end;
  }

  [Symbol.dispose](): void {
    this.#aead[Symbol.dispose]();
  }

  /** Is it between two chunks? */
  get idle(): boolean {
    return this.#payloadBytes < 0;
  }
}

function countOf({ giveAway }: KeptAead, nonce: Buffer): number {
  return giveAway === undefined ? 0 : nonce.readUIntLE(0, 6);
}

/** What a direction needs that has not begun. */
export interface Unbegun {
  /** That of a server, which has said nothing; null: it has. */
  readonly sealer: ChunkSealer | null;
  readonly details: ShadowsocksDetails;
}

/** The two directions of a stream; null: that one has not begun. */
export interface Halves {
  readonly sealer: ChunkSealer | null;
  readonly opener: ChunkOpener | null;
  readonly arrived: ByteQueue;
}

/** Whether those that have begun have contexts to hand over. */
export function canGive({ sealer, opener }: Halves): boolean {
  return sealer?.departingCount !== 0 && opener?.departingCount !== 0;
}

/**
 * What goes to a worker that takes over both directions. Numbers: the contexts of opening and sealing, the message count
 * of each, the largest payload of a chunk, the known length of the next payload or -1, 1 where a faulty peer is spared.
 * `unbegun`: of the direction that has not begun; null: both have.
 */
export function departure(
  { sealer, opener, arrived }: Halves,
  isSpared: boolean,
  unbegun: Unbegun | null,
): DetachedState {
  const sealing = sealer ?? unbegun?.sealer ?? null;
  const counts = [opener?.departingCount ?? 0, sealer?.departingCount ?? 0];
  const contexts = [opener?.giveAway() ?? 0, sealing?.giveAway() ?? 0];
  const sizes = [sealing?.maxBytes ?? 0, opener?.payloadBytes ?? -1];
  return {
    numbers: [...contexts, ...counts, ...sizes, isSpared ? 1 : 0],
    unread: arrived.length === 0 ? null : Uint8Array.from(arrived.takeAll()),
    ...(unbegun === null ? {} : { details: { shadowsocks: unbegun.details } }),
  };
}
