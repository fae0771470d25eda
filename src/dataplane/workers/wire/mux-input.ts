import { byteAt } from "#lib/at.ts";
import type { MuxFraming, MuxHeard, SessionStream } from "./mux-framing.ts";

/** What is heard of no stream that is known. */
export type MuxListener = Pick<MuxHeard, "onOpen" | "say" | "retire">;

/** What comes over a session's connection, taken apart: bodies go to their streams as they come, so frames may be of any length. */
export class MuxInput implements MuxHeard {
  readonly #framing: MuxFraming;
  /** By their numbers. */
  readonly #streams: ReadonlyMap<number, SessionStream>;
  readonly #session: MuxListener;
  readonly #head: Buffer;
  #headBytes = 0;
  /** Of the data frame that is under way, still to come. */
  #left = 0;
  /** Of which it is; null: of none that is known. */
  #reader: SessionStream | null = null;
  #isLastOfReader = false;

  constructor(framing: MuxFraming, streams: ReadonlyMap<number, SessionStream>, session: MuxListener) {
    this.#framing = framing;
    this.#streams = streams;
    this.#session = session;
    this.#head = Buffer.alloc(framing.headBytes);
  }

  /** What comes first is no frame. */
  skip(bytes: number): void {
    this.#left = bytes;
  }

  /** The first so many bytes. False: the peer has broken the protocol. */
  take(buffer: Uint8Array, bytes: number): boolean {
    for (let at = 0; at < bytes;) {
      if (this.#left > 0) at = this.#takeBody(buffer, at, bytes);
      else {
        this.#head[this.#headBytes++] = byteAt(buffer, at++);
        if (this.#headBytes === this.#head.length && !this.#takeHead()) return false;
      }
    }
    return true;
  }

  #takeBody(buffer: Uint8Array, from: number, to: number): number {
    const end = Math.min(from + this.#left, to);
    this.#left -= end - from;
    this.#reader?.arrive(buffer, from, end);
    if (this.#left === 0 && this.#isLastOfReader) this.#reader?.onFarEnd();
    return end;
  }

  #takeHead(): boolean {
    this.#headBytes = 0;
    return this.#framing.onHead(this.#head, this);
  }

  /** It takes nothing any more. */
  forget(stream: SessionStream): void {
    if (this.#reader === stream) this.#reader = null;
  }

  onOpen(id: number): boolean {
    return this.#session.onOpen(id);
  }

  onData(id: number, bytes: number, isLast: boolean): boolean {
    const reader = this.#streams.get(id) ?? null;
    this.#reader = reader;
    this.#left = bytes;
    this.#isLastOfReader = isLast;
    if (bytes === 0 && isLast) reader?.onFarEnd();
    return reader === null || reader.spend(bytes);
  }

  onCredit(id: number, bytes: number): boolean {
    return this.#streams.get(id)?.widen(bytes) !== false;
  }

  onFarEnd(id: number): void {
    this.#streams.get(id)?.onFarEnd();
  }

  onReset(id: number): void {
    this.#streams.get(id)?.onReset();
  }

  say(frame: Uint8Array): void {
    this.#session.say(frame);
  }

  retire(): void {
    this.#session.retire();
  }
}
