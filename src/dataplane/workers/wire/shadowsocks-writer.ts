import { EAGAIN } from "#platform/linux/relay-calls.ts";
import type { WireIo } from "./wire.ts";
import { LENGTH_BYTES, type CipherMemory, TAG_BYTES } from "./cipher-memory.ts";
import type { ShadowsocksDirection } from "./shadowsocks-reader.ts";

/** The direction to the peer. What the socket has not taken of the sealed bytes is kept: they cannot be sealed again. */
export class ShadowsocksWriter {
  readonly #memory: CipherMemory;
  readonly #fd: number;
  readonly #context: bigint;
  readonly #chunkBytes: number;
  #count: number;
  #pending: Uint8Array | null = null;

  constructor(memory: CipherMemory, fd: number, { context, count, chunkBytes }: ShadowsocksDirection) {
    this.#memory = memory;
    this.#fd = fd;
    this.#context = context;
    this.#count = count;
    this.#chunkBytes = chunkBytes;
  }

  get pending(): boolean {
    return this.#pending !== null;
  }

  /** Takes all of the first `size` bytes of the thread's buffer, or answers with an errno. */
  write(io: WireIo, size: number): number {
    const end = this.#seal(size);
    const sent = io.calls.sendAt(this.#fd, this.#memory.wireAt, end);
    if (sent < 0 && sent !== EAGAIN) return sent;
    this.#keep(io, this.#memory.wire, Math.max(0, sent), end);
    return size;
  }

  /** Only while something is pending. */
  flush(io: WireIo): number {
    const pending = this.#pending as Uint8Array;
    this.#memory.wire.set(pending);
    const sent = io.calls.sendAt(this.#fd, this.#memory.wireAt, pending.length);
    if (sent > 0) {
      this.drop(io);
      this.#keep(io, pending, sent, pending.length);
    }
    return sent;
  }

  #keep(io: WireIo, sealed: Uint8Array, from: number, to: number): void {
    if (from === to) return;
    this.#pending = sealed.slice(from, to);
    io.bufferedBytes += to - from;
  }

  #seal(size: number): number {
    const { length } = this.#memory;
    let end = 0;
    for (let from = 0; from < size; from += this.#chunkBytes) {
      const bytes = Math.min(this.#chunkBytes, size - from);
      length[0] = bytes >>> 8;
      length[1] = bytes & 0xff;
      end = this.#sealPart(end, this.#memory.lengthAt, LENGTH_BYTES);
      end = this.#sealPart(end, this.#memory.plainAt + BigInt(from), bytes);
    }
    return end;
  }

  #sealPart(at: number, from: bigint, size: number): number {
    const { evp, wireAt } = this.#memory;
    evp.beginCounted(this.#context, this.#count++);
    evp.sealAt(this.#context, wireAt + BigInt(at), from, size);
    return at + size + TAG_BYTES;
  }

  drop(io: WireIo): void {
    io.bufferedBytes -= this.#pending?.length ?? 0;
    this.#pending = null;
  }
}
