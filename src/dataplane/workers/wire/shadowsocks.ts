import type { ShadowsocksDetails } from "#core/wire-details.ts";
import type { CipherMemory } from "./cipher-memory.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { SealedWire } from "./sealed-wire.ts";
import { ShadowsocksAnswer } from "./shadowsocks-answer.ts";
import { ShadowsocksReader } from "./shadowsocks-reader.ts";
import { ShadowsocksWriter } from "./shadowsocks-writer.ts";

export interface WireStart {
  /**
   * 0 and 1: the contexts of opening and sealing. 2 and 3: the messages of each so far. 4: the most that a chunk carries.
   * 5: the length of the payload that comes next, where it is known, or -1. 6: 1 where a faulty peer is not to be reset.
   * There is no context of opening while the answer is still to come.
   */
  word(at: number): number;
  /** Read from below already, and not opened. */
  readonly unread: Uint8Array | null;
  /** Absent: both sides have said what is in front of their chunks. */
  readonly details: ShadowsocksDetails | undefined;
  /** The context at such a place is the wire's now. */
  keep(at: number, context: bigint): void;
  /** The socket stays open. */
  spare(): void;
}

/** The sealed chunks of Shadowsocks, behind the headers that open the stream. */
export class ShadowsocksWire extends SealedWire {
  readonly #spare: (() => void) | null;

  constructor(memory: CipherMemory, below: SealedBelow, { word, unread, details, keep, spare }: WireStart) {
    const [opening, sealing] = [BigInt(word(0)), BigInt(word(1))];
    const chunkBytes = word(4);
    const inward = { context: opening, count: word(2), chunkBytes };
    const outward = { context: sealing, count: word(3), chunkBytes };
    const contexts = { sealing, opening };
    const awaited = details?.answer ?? null;
    const answer = details === undefined || awaited === null ? null : new ShadowsocksAnswer(awaited, details);
    const onContext = (context: bigint): void => {
      contexts.opening = context;
      keep(0, context);
    };
    super({
      memory,
      below,
      contexts,
      reader: new ShadowsocksReader(memory, below, inward, word(5), { rest: unread, answer, onContext }),
      writer: new ShadowsocksWriter(memory, below, outward, awaited === null ? (details ?? null) : null),
    });
    this.#spare = word(6) === 1 ? spare : null;
  }

  protected override onBroken(): void {
    this.#spare?.();
  }
}
