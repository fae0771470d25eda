import { type CipherMemory, LENGTH_BYTES, TAG_BYTES } from "./cipher-memory.ts";
import type { ShadowsocksDetails } from "#core/wire-details.ts";
import { fixedInto } from "./shadowsocks-answer.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { evenly, SealedWriter } from "./sealed-writer.ts";
import type { ShadowsocksDirection } from "./shadowsocks-reader.ts";

/** The thread's buffer is a multiple of it, so readers of all of one have nothing left. */
const MOST_CHUNK_BYTES = 32 * 1024;

/** The direction to the peer, in chunks. */
export class ShadowsocksWriter extends SealedWriter {
  readonly #context: bigint;
  readonly #chunkBytes: number;
  #count: number;
  /** A server's, whose salt goes out in front of the first chunk; null: it is out. */
  #unsaid: ShadowsocksDetails | null;

  constructor(
    memory: CipherMemory,
    below: SealedBelow,
    { context, count, chunkBytes }: ShadowsocksDirection,
    unsaid: ShadowsocksDetails | null,
  ) {
    super(memory, below);
    this.#context = context;
    this.#count = count;
    this.#chunkBytes = chunkBytes;
    this.#unsaid = unsaid;
  }

  protected seal(size: number): number {
    const { length, lengthAt, plainAddresses } = this.memory;
    const { salt = null, requestSalt = null } = this.#unsaid ?? {};
    let end = salt === null ? 0 : this.#saySalt(salt);
    const firstBytes = requestSalt === null ? 0 : Math.min(size, this.#chunkBytes);
    if (this.#unsaid !== null && firstBytes > 0) end = this.#sealFirst(end, this.#unsaid, firstBytes);
    this.#unsaid = null;
    const most = evenly(size - firstBytes, Math.min(this.#chunkBytes, MOST_CHUNK_BYTES));
    for (let from = firstBytes; from < size; from += most) {
      const bytes = Math.min(most, size - from);
      length[0] = bytes >>> 8;
      length[1] = bytes & 0xff;
      end = this.#sealPart(end, lengthAt, LENGTH_BYTES);
      end = this.#sealPart(end, plainAddresses.of(from), bytes);
    }
    return end;
  }

  #saySalt(salt: Uint8Array): number {
    this.memory.wire.set(salt);
    return salt.length;
  }

  /** The header has the length of the first payload, which goes without one. */
  #sealFirst(at: number, unsaid: ShadowsocksDetails, bytes: number): number {
    const { plainAddresses, scratch, scratchAt } = this.memory;
    const end = this.#sealPart(at, scratchAt, fixedInto(scratch, unsaid, bytes));
    return this.#sealPart(end, plainAddresses.of(0), bytes);
  }

  #sealPart(at: number, from: bigint, size: number): number {
    const { evp, wireAddresses } = this.memory;
    evp.beginCounted(this.#context, this.#count++);
    evp.sealAt(this.#context, wireAddresses.of(at), from, size);
    return at + size + TAG_BYTES;
  }
}
