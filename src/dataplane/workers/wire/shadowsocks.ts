import type { WireIo } from "./wire.ts";
import type { Wire } from "./wire.ts";
import { Readiness } from "./readiness.ts";
import type { CipherMemory } from "./cipher-memory.ts";
import { BROKEN } from "./sealed-reader.ts";
import { ShadowsocksReader } from "./shadowsocks-reader.ts";
import { ShadowsocksWriter } from "./shadowsocks-writer.ts";

export interface WireStart {
  /**
   * 0 and 1: the contexts of opening and sealing. 2 and 3: the messages of each so far. 4: the most that a chunk carries.
   * 5: the length of the payload that comes next, where it is known, or -1. 6: 1 where a faulty peer is not to be reset.
   */
  word(at: number): number;
  /** Read from the socket already, and not opened. */
  readonly unread: Uint8Array | null;
  /** The socket stays open. */
  spare(): void;
}

/** A socket with the sealed chunks of Shadowsocks, behind the headers that open the stream. */
export class ShadowsocksWire extends Readiness implements Wire {
  readonly bareSocket = -1;
  readonly #memory: CipherMemory;
  readonly fd: number;
  readonly #contexts: { sealing: bigint; opening: bigint };
  readonly #reader: ShadowsocksReader;
  readonly #writer: ShadowsocksWriter;
  readonly #spare: (() => void) | null;

  /** The contexts are its own from here on. */
  constructor(memory: CipherMemory, fd: number, { word, unread, spare }: WireStart) {
    super();
    const opening = BigInt(word(0));
    const sealing = BigInt(word(1));
    const chunkBytes = word(4);
    this.#memory = memory;
    this.fd = fd;
    this.#contexts = { opening, sealing };
    const inward = { context: opening, count: word(2), chunkBytes };
    this.#reader = new ShadowsocksReader(memory, fd, inward, word(5), unread);
    this.#writer = new ShadowsocksWriter(memory, fd, { context: sealing, count: word(3), chunkBytes });
    this.#spare = word(6) === 1 ? spare : null;
  }

  get pending(): boolean {
    return this.#writer.pending;
  }

  read(io: WireIo, size: number): number {
    return this.#found(this.#reader.read(io, size));
  }

  available(io: WireIo): number {
    return this.#found(this.#reader.available(io));
  }

  /** A short read says that there is no more, unless it is the last. */
  #found(bytes: number): number {
    if (bytes === BROKEN) this.#spare?.();
    if (this.#reader.isDry && !this.hungUp) this.readable = false;
    return bytes;
  }

  write(io: WireIo, size: number): number {
    const taken = this.#writer.write(io, size);
    this.writable = !this.#writer.pending;
    return taken;
  }

  flush(io: WireIo): number {
    const sent = this.#writer.flush(io);
    if (this.#writer.pending) this.writable = false;
    return sent;
  }

  endWriting({ calls }: WireIo): number {
    return calls.endWriting(this.fd);
  }

  override onEvents(events: number): void {
    super.onEvents(events);
    if (this.readable) this.#reader.wake();
  }

  /** The library wipes the keys. */
  drop(io: WireIo): void {
    this.#writer.drop(io);
    this.#memory.evp.free(this.#contexts);
  }
}
