import { byteAt } from "#lib/at.ts";
import type { MuxFraming, MuxHeard, SessionStream } from "./mux-framing.ts";

const NOTHING = Buffer.alloc(0);

/** What is heard of no stream that is known. */
export type MuxListener = Pick<MuxHeard, "onOpen" | "onFirstWindow" | "onRoom" | "share" | "say" | "retire">;

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
  /** Behind it, of no meaning. */
  #padding = 0;
  /** Of what the framing wants: how much, and how much of it is there. */
  #wanted = 0;
  #collected = 0;
  #memory = NOTHING;

  constructor(framing: MuxFraming, streams: ReadonlyMap<number, SessionStream>, session: MuxListener) {
    this.#framing = framing;
    this.#streams = streams;
    this.#session = session;
    this.#head = Buffer.alloc(framing.headBytes);
  }

  /** So many bytes that come next are no frame. */
  skip(bytes: number): void {
    this.#left = bytes;
    this.#padding = 0;
    this.#isLastOfReader = false;
  }

  /** The first so many bytes. False: the peer has broken the protocol. */
  take(buffer: Uint8Array, bytes: number): boolean {
    for (let at = 0; at < bytes;) {
      if (this.#left > 0) at = this.#takeBody(buffer, at, bytes);
      else if (this.#wanted > 0) {
        at = this.#collect(buffer, at, bytes);
        if (this.#collected === this.#wanted && !this.#takeCollected()) return false;
      } else {
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
    if (this.#left === 0) this.#endBody();
    return end;
  }

  #endBody(): void {
    const reader = this.#reader;
    const { isLast, padding } = { isLast: this.#isLastOfReader, padding: this.#padding };
    this.#reader = null;
    this.skip(padding);
    reader?.onWhole?.();
    if (isLast) reader?.onFarEnd();
  }

  #collect(buffer: Uint8Array, from: number, to: number): number {
    const end = Math.min(from + this.#wanted - this.#collected, to);
    this.#memory.set(buffer.subarray(from, end), this.#collected);
    this.#collected += end - from;
    return end;
  }

  #takeCollected(): boolean {
    const bytes = this.#memory.subarray(0, this.#wanted);
    this.#wanted = this.#collected = 0;
    return this.#framing.onCollected(bytes, this);
  }

  collect(bytes: number): void {
    this.#wanted = bytes;
    if (this.#memory.length < bytes) this.#memory = Buffer.allocUnsafeSlow(bytes);
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

  onData(id: number, bytes: number, isLast: boolean, padded = 0): boolean {
    const reader = this.#streams.get(id) ?? null;
    this.#reader = reader;
    this.#left = bytes;
    this.#isLastOfReader = isLast;
    this.#padding = Math.max(0, padded - 1);
    const isRight = reader === null || reader.spend(bytes + padded);
    if (padded > 0) reader?.taken(padded);
    if (bytes === 0) this.#endBody();
    return isRight;
  }

  onCredit(id: number, bytes: number): boolean {
    return this.#streams.get(id)?.widen(bytes) !== false;
  }

  onFarEnd(id: number): void {
    this.#streams.get(id)?.onFarEnd();
  }

  onKeepsReading(id: number): void {
    this.#streams.get(id)?.onKeepsReading?.();
  }

  onReset(id: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.isReset = true;
    stream.onReset();
  }

  refuse(id: number): void {
    this.#streams.get(id)?.onReset();
  }

  onFirstWindow(change: number): void {
    this.#session.onFirstWindow(change);
  }

  onRoom(): void {
    this.#session.onRoom();
  }

  share(): void {
    this.#session.share();
  }

  say(frame: Uint8Array): void {
    this.#session.say(frame);
  }

  retire(lastId?: number): void {
    this.#session.retire(lastId);
  }
}
