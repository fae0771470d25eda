/** The chunks behind the headers: SIZE DATA PADDING, in the forms that the request's options name. */
import { ProtocolError } from "#core/errors.ts";
import type { VmessDirection } from "#core/wire-details.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import type { KeptAead } from "#platform/aead.ts";
import { openAead, TAG_BYTES } from "#protocols/crypto/aead.ts";
import {
  COMMAND_UDP,
  OPTION_AUTHENTICATED_LENGTH,
  OPTION_CHUNKS,
  OPTION_MASKING,
  OPTION_PADDING,
  type RequestHeader,
  SECURITY_AES,
  SECURITY_CHACHA,
} from "./header.ts";
import { answerKey, expandKey, kdf16 } from "./kdf.ts";
import { SizeMask } from "./size-mask.ts";

/** Peers read chunks of at least this size, whatever their own limits. */
export const MAX_CHUNK = 8192;
/** Of a client's first chunk: mihomo's server (1.10) loses what its first read of 4096 bytes does not take. */
const MAX_FIRST_CHUNK = 2048;
export const MAX_PADDING = 64;

function cipherOf(security: number, key: Uint8Array): KeptAead | null {
  if (security === SECURITY_AES) return openAead("aes-128-gcm", key);
  return security === SECURITY_CHACHA ? openAead("chacha20-poly1305", expandKey(key)) : null;
}

/** What both ends of one direction know. Owns its ciphers. */
class Direction implements Disposable {
  readonly chunked: boolean;
  readonly aead: KeptAead | null;
  readonly tagBytes: number;
  readonly sizeBytes: number;
  readonly #sizes: KeptAead | null;
  readonly #mask: SizeMask | null;
  readonly #padded: boolean;
  readonly #iv: Uint8Array;
  readonly #nonce: Buffer;
  readonly #sizeNonce: Buffer;
  /** The plain size of a chunk, big endian. */
  readonly #size = Buffer.allocUnsafe(2);
  #count = 0;

  constructor(request: RequestHeader, side: "request" | "answer") {
    const { options, security, command, key, iv } = request;
    const [ownKey, ownIv] = side === "request" ? [key, iv] : [answerKey(key), answerKey(iv)];
    this.aead = cipherOf(security, ownKey);
    this.tagBytes = this.aead === null ? 0 : TAG_BYTES;
    this.chunked = (options & OPTION_CHUNKS) !== 0 || this.aead !== null;
    // The key and the IV of the sizes are the request's in both directions.
    const authenticated = (options & OPTION_AUTHENTICATED_LENGTH) !== 0;
    this.#sizes = authenticated ? cipherOf(security, kdf16(key, "auth_len")) : null;
    this.sizeBytes = this.#sizes === null ? 2 : 2 + TAG_BYTES;
    this.#mask = (options & OPTION_MASKING) === 0 ? null : new SizeMask(ownIv);
    // Streams without a cipher are never padded, whatever the options say (v2ray 4.34); their datagrams are.
    this.#padded = (options & OPTION_PADDING) !== 0 && (this.aead !== null || command === COMMAND_UDP);
    this.#iv = new Uint8Array(ownIv);
    this.#nonce = Buffer.from(ownIv.subarray(0, 12));
    this.#sizeNonce = Buffer.from(iv.subarray(0, 12));
  }

  /** Whether its chunks are sealed by contexts that can be given away. */
  get canDepart(): boolean {
    return this.aead?.giveAway !== undefined;
  }

  /** The contexts of chunks and of sizes, the latter 0 where sizes are not sealed. They are the caller's. */
  giveAway(way: "sealing" | "opening"): readonly [bodies: number, sizes: number] {
    return [Number(this.aead?.giveAway?.(way) ?? 0n), Number(this.#sizes?.giveAway?.(way) ?? 0n)];
  }

  get state(): Omit<VmessDirection, "size" | "padding" | "mayEnd"> {
    return {
      iv: this.#iv,
      sizeIv: this.#sizes === null ? null : new Uint8Array(this.#sizeNonce),
      isMasked: this.#mask !== null,
      isPadded: this.#padded,
      drawn: this.#mask?.drawn ?? 0,
      count: this.#count,
    };
  }

  /** Comes before the size: both draw from one stream. */
  nextPadding(): number {
    return this.#padded && this.#mask !== null ? this.#mask.next() % MAX_PADDING : 0;
  }

  /** Counter(2) and bytes 2 to 12 of the IV; it wraps, as it does at all peers. */
  nonce(): Buffer {
    this.#nonce.writeUInt16BE(this.#count);
    return this.#nonce;
  }

  advance(): void {
    this.#count = (this.#count + 1) & 0xffff;
  }

  sizeInto(out: Buffer, at: number, size: number): number {
    if (this.#sizes === null) return out.writeUInt16BE(size ^ (this.#mask?.next() ?? 0), at);
    this.#sizeNonce.writeUInt16BE(this.#count);
    this.#size.writeUInt16BE(size - TAG_BYTES);
    return this.#sizes.sealInto(out, at, this.#sizeNonce, this.#size);
  }

  openSize(sealed: Buffer): number {
    if (this.#sizes === null) return sealed.readUInt16BE() ^ (this.#mask?.next() ?? 0);
    this.#sizeNonce.writeUInt16BE(this.#count);
    if (this.#sizes.openInto(this.#size, 0, this.#sizeNonce, sealed) < 0) {
      this[Symbol.dispose]();
      throw new ProtocolError("a chunk's size does not authenticate");
    }
    return this.#size.readUInt16BE() + TAG_BYTES;
  }

  /** Writes the plain bytes of a chunk without its padding; answers with the offset behind them. */
  openInto(out: Buffer, at: number, sealed: Buffer): number {
    if (this.aead === null) return at + sealed.copy(out, at);
    const end = this.aead.openInto(out, at, this.nonce(), sealed);
    if (end >= 0) return end;
    this[Symbol.dispose]();
    throw new ProtocolError("a chunk does not authenticate");
  }

  [Symbol.dispose](): void {
    this.aead?.[Symbol.dispose]();
    this.#sizes?.[Symbol.dispose]();
  }
}

/** `whole`: each piece is one chunk, because it is a datagram. */
export class BodySealer implements Disposable {
  readonly #direction: Direction;
  readonly #maxBytes: number;
  /** Of the chunk that comes next. */
  #nextBytes: number;

  constructor(request: RequestHeader, side: "request" | "answer", whole: boolean) {
    this.#direction = new Direction(request, side);
    const { tagBytes } = this.#direction;
    this.#maxBytes = (whole ? 0xffff : MAX_CHUNK) - tagBytes - MAX_PADDING;
    this.#nextBytes = side === "request" && !whole ? MAX_FIRST_CHUNK : this.#maxBytes;
  }

  /** Without chunks the bytes of a stream are on the wire as they are. */
  get isBare(): boolean {
    return !this.#direction.chunked;
  }

  get canDepart(): boolean {
    return this.#direction.canDepart;
  }

  /** For a worker, with what `giveAway` gives: from then on nothing is sealed here. */
  depart(): { readonly contexts: readonly [number, number]; readonly state: VmessDirection } {
    const state = { ...this.#direction.state, size: -1, padding: 0, mayEnd: true };
    return { contexts: this.#direction.giveAway("sealing"), state };
  }

  /** What the next chunk carries at most. */
  get nextBytes(): number {
    return this.#nextBytes;
  }

  seal(plain: Buffer): Buffer {
    const { chunked, sizeBytes, tagBytes } = this.#direction;
    if (!chunked || plain.length === 0) return plain;
    const chunks = 1 + Math.ceil(plain.length / this.#maxBytes);
    const out = Buffer.alloc(plain.length + chunks * (sizeBytes + tagBytes + MAX_PADDING));
    let end = 0;
    for (let from = 0; from < plain.length;) {
      const piece = plain.subarray(from, from + this.#nextBytes);
      end = this.#chunkInto(out, end, piece);
      from += piece.length;
      this.#nextBytes = this.#maxBytes;
    }
    return out.subarray(0, end);
  }

  /** The empty chunk that ends a stream of chunks; null where the wire's end does. */
  sealEnd(): Buffer | null {
    const { chunked, sizeBytes, tagBytes } = this.#direction;
    if (!chunked) return null;
    const out = Buffer.alloc(sizeBytes + tagBytes + MAX_PADDING);
    return out.subarray(0, this.#chunkInto(out, 0, Buffer.alloc(0)));
  }

  /** The padding is zeros: on the wire it is masked like the sizes, and peers ignore it. */
  #chunkInto(out: Buffer, at: number, plain: Buffer): number {
    const direction = this.#direction;
    const padding = direction.nextPadding();
    const bodyAt = direction.sizeInto(out, at, plain.length + direction.tagBytes + padding);
    const { aead } = direction;
    const end =
      aead === null ? bodyAt + plain.copy(out, bodyAt) : aead.sealInto(out, bodyAt, direction.nonce(), plain);
    direction.advance();
    return end + padding;
  }

  [Symbol.dispose](): void {
    this.#direction[Symbol.dispose]();
  }
}

/** `whole`: each piece is handed over by itself, because it is a datagram. */
export class BodyOpener implements Disposable {
  readonly #direction: Direction;
  readonly #whole: boolean;
  /** Of the chunk whose size has been read; -1: a size comes next. */
  #size = -1;
  #padding = 0;
  /**
   * A client's first chunk is no end, even where it is empty: Xray (26.7) sends one after its header when its own
   * client has said nothing for 100 ms, and continues. A real end closes the wire or is a second empty chunk.
   */
  #mayEnd: boolean;
  /** The end mark came. */
  hasEnded = false;

  constructor(request: RequestHeader, side: "request" | "answer", whole: boolean) {
    this.#direction = new Direction(request, side);
    this.#whole = whole;
    this.#mayEnd = side === "answer";
  }

  /** As `BodySealer`. */
  depart(): { readonly contexts: readonly [number, number]; readonly state: VmessDirection } {
    const [size, padding, mayEnd] = [this.#size, this.#padding, this.#mayEnd];
    const state = { ...this.#direction.state, size, padding, mayEnd };
    return { contexts: this.#direction.giveAway("opening"), state };
  }

  /** Is it between two chunks? */
  get idle(): boolean {
    return this.#size < 0;
  }

  /**
   * Emits what is whole: of a stream all chunks in one piece, which saves the receiver a write each; null is the peer's
   * end mark. What came before a faulty chunk is emitted before its `ProtocolError` is thrown.
   */
  open(arrived: ByteQueue, emit: (plain: Buffer | null) => void): void {
    if (!this.#direction.chunked) {
      while (arrived.length > 0) emit(arrived.takeSome(arrived.length));
      return;
    }
    while (this.#chunkArrived(arrived)) if (!this.#openSome(arrived, emit)) return emit(null);
  }

  /** False: the end mark came; that is known before what came in front of it is emitted. */
  #openSome(arrived: ByteQueue, emit: (plain: Buffer) => void): boolean {
    const out = Buffer.allocUnsafe(this.#whole ? this.#size : arrived.length);
    let end = 0;
    try {
      do {
        const next = this.#chunkInto(out, end, arrived);
        this.hasEnded = next === end && this.#mayEnd;
        if (this.hasEnded) return false;
        this.#mayEnd = true;
        end = next;
      } while (!this.#whole && this.#chunkArrived(arrived));
    } finally {
      if (end > 0) emit(out.subarray(0, end));
    }
    return true;
  }

  /** Reads the size where it is due. Is all of the chunk there? Throws `ProtocolError`. */
  #chunkArrived(arrived: ByteQueue): boolean {
    const direction = this.#direction;
    if (this.#size < 0) {
      const sealed = arrived.take(direction.sizeBytes);
      if (sealed === null) return false;
      this.#padding = direction.nextPadding();
      this.#size = direction.openSize(sealed);
      if (this.#size < direction.tagBytes + this.#padding || this.#size > 0xffff)
        throw new ProtocolError(`a chunk of ${this.#size} bytes cannot be`);
    }
    return arrived.length >= this.#size;
  }

  #chunkInto(out: Buffer, at: number, arrived: ByteQueue): number {
    const chunk = arrived.takeUpTo(this.#size);
    this.#size = -1;
    const end = this.#direction.openInto(out, at, chunk.subarray(0, chunk.length - this.#padding));
    this.#direction.advance();
    return end;
  }

  [Symbol.dispose](): void {
    this.#direction[Symbol.dispose]();
  }
}
