import type { CipherMemory } from "./cipher-memory.ts";
import { SealedWire } from "./sealed-wire.ts";
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
export class ShadowsocksWire extends SealedWire {
  readonly #spare: (() => void) | null;

  constructor(memory: CipherMemory, fd: number, { word, unread, spare }: WireStart) {
    const [opening, sealing] = [BigInt(word(0)), BigInt(word(1))];
    const chunkBytes = word(4);
    const inward = { context: opening, count: word(2), chunkBytes };
    super({
      memory,
      fd,
      contexts: { sealing, opening },
      reader: new ShadowsocksReader(memory, fd, inward, word(5), unread),
      writer: new ShadowsocksWriter(memory, fd, { context: sealing, count: word(3), chunkBytes }),
    });
    this.#spare = word(6) === 1 ? spare : null;
  }

  protected override onBroken(): void {
    this.#spare?.();
  }
}
