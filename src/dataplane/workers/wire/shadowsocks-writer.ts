import { type CipherMemory, LENGTH_BYTES, TAG_BYTES } from "./cipher-memory.ts";
import { SealedWriter } from "./sealed-writer.ts";
import type { ShadowsocksDirection } from "./shadowsocks-reader.ts";

/** The direction to the peer, in chunks. */
export class ShadowsocksWriter extends SealedWriter {
  readonly #context: bigint;
  readonly #chunkBytes: number;
  #count: number;

  constructor(memory: CipherMemory, fd: number, { context, count, chunkBytes }: ShadowsocksDirection) {
    super(memory, fd);
    this.#context = context;
    this.#count = count;
    this.#chunkBytes = chunkBytes;
  }

  protected seal(size: number): number {
    const { length, lengthAt, plainAt } = this.memory;
    let end = 0;
    for (let from = 0; from < size; from += this.#chunkBytes) {
      const bytes = Math.min(this.#chunkBytes, size - from);
      length[0] = bytes >>> 8;
      length[1] = bytes & 0xff;
      end = this.#sealPart(end, lengthAt, LENGTH_BYTES);
      end = this.#sealPart(end, plainAt + BigInt(from), bytes);
    }
    return end;
  }

  #sealPart(at: number, from: bigint, size: number): number {
    const { evp, wireAt } = this.memory;
    evp.beginCounted(this.#context, this.#count++);
    evp.sealAt(this.#context, wireAt + BigInt(at), from, size);
    return at + size + TAG_BYTES;
  }
}
