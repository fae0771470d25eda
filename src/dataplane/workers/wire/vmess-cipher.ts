import type { VmessDirection } from "#core/wire-details.ts";
import { byteAt } from "#lib/at.ts";
import { MAX_PADDING } from "#protocols/vmess/body.ts";
import { SizeMask } from "#protocols/vmess/size-mask.ts";
import { type CipherMemory, TAG_BYTES } from "./cipher-memory.ts";

/** The contexts of one direction, which are its owner's: of chunks, and of sizes; the latter 0 where those are not sealed. */
export interface VmessContexts {
  readonly bodies: bigint;
  readonly sizes: bigint;
}

const NOTHING = new Uint8Array(0);

/** What both ends of one direction know of its chunks: SIZE(2, masked; or sealed, 18) SEALED PADDING. */
export class VmessCipher {
  readonly context: bigint;
  readonly sizeBytes: number;
  readonly #memory: CipherMemory;
  readonly #sizes: bigint;
  readonly #mask: SizeMask | null;
  readonly #isPadded: boolean;
  /** COUNT(2) and bytes 2 to 12 of the IV. */
  readonly #nonce: Uint8Array;
  /** Likewise, of the request; empty where sizes are not sealed. */
  readonly #sizeNonce: Uint8Array;
  #count: number;

  constructor(memory: CipherMemory, { bodies, sizes }: VmessContexts, state: VmessDirection) {
    this.#memory = memory;
    this.context = bodies;
    this.#sizes = sizes;
    this.sizeBytes = sizes === 0n ? 2 : 2 + TAG_BYTES;
    this.#mask = state.isMasked ? new SizeMask(state.iv, state.drawn) : null;
    this.#isPadded = state.isPadded;
    this.#nonce = state.iv.slice(0, 12);
    this.#sizeNonce = state.sizeIv?.slice(0, 12) ?? NOTHING;
    this.#count = state.count;
  }

  /** Comes before the size: both draw from one stream. */
  nextPadding(): number {
    return this.#isPadded && this.#mask !== null ? this.#mask.next() % MAX_PADDING : 0;
  }

  /** Gives the next chunk its nonce. */
  begin(): void {
    setCount(this.#nonce, this.#count);
    this.#memory.evp.begin(this.context, this.#nonce, undefined);
  }

  /** The chunk is through. */
  advance(): void {
    this.#count = (this.#count + 1) & 0xffff;
  }

  /** Writes the size of a chunk, as far behind the start of the wire's memory; answers with where it ends. */
  writeSize(at: number, size: number): number {
    const { evp, length, lengthAt, wire, wireAddresses } = this.#memory;
    const isSealed = this.#sizes !== 0n;
    const value = isSealed ? size - TAG_BYTES : size ^ (this.#mask?.next() ?? 0);
    const out = isSealed ? length : wire;
    const to = isSealed ? 0 : at;
    out[to] = value >>> 8;
    out[to + 1] = value & 0xff;
    if (isSealed) {
      this.#beginSize();
      evp.sealAt(this.#sizes, wireAddresses.of(at), lengthAt, 2);
    }
    return at + this.sizeBytes;
  }

  /** The size that lies there; -1: it is not authentic. */
  readSize(at: number): number {
    const { evp, length, lengthAt, wire, wireAddresses } = this.#memory;
    if (this.#sizes === 0n) return wordAt(wire, at) ^ (this.#mask?.next() ?? 0);
    this.#beginSize();
    const isAuthentic = evp.openAt(this.#sizes, lengthAt, wireAddresses.of(at), 2);
    return isAuthentic ? wordAt(length, 0) + TAG_BYTES : -1;
  }

  #beginSize(): void {
    setCount(this.#sizeNonce, this.#count);
    this.#memory.evp.begin(this.#sizes, this.#sizeNonce, undefined);
  }
}

const wordAt = (bytes: Uint8Array, at: number): number => (byteAt(bytes, at) << 8) | byteAt(bytes, at + 1);

function setCount(nonce: Uint8Array, count: number): void {
  nonce[0] = count >>> 8;
  nonce[1] = count & 0xff;
}
