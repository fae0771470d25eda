import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import type { CipherMemory } from "./cipher-memory.ts";
import type { SealedBelow } from "./sealed-below.ts";
import type { WireIo } from "./wire.ts";

/** What each message carries of `size` bytes, above 0, where none may carry more than `most`: all about the same. */
export function evenly(size: number, most: number): number {
  return Math.ceil(size / Math.ceil(size / most));
}

/** The direction to the peer, in sealed messages. What was not taken of them below is kept: they cannot be sealed again. */
export abstract class SealedWriter {
  protected readonly memory: CipherMemory;
  readonly #below: SealedBelow;
  #pending: Uint8Array | null = null;

  constructor(memory: CipherMemory, below: SealedBelow) {
    this.memory = memory;
    this.#below = below;
  }

  /** The first `size` bytes of the thread's buffer to the start of the wire's memory; answers with where they end. */
  protected abstract seal(size: number): number;

  get pending(): boolean {
    return this.#pending !== null;
  }

  /** Takes all of the first `size` bytes of the thread's buffer, or answers with an errno. */
  write(io: WireIo, size: number): number {
    const sent = this.#send(io, this.seal(size));
    return sent < 0 ? sent : size;
  }

  /** Where the protocol has a word for the end: likewise. */
  protected sealEnd(): number {
    return 0;
  }

  /** Says the end; only while nothing is pending. 0, or an errno. */
  writeEnd(io: WireIo): number {
    return this.#send(io, this.sealEnd());
  }

  #send(io: WireIo, end: number): number {
    const sent = this.#below.send(io, end);
    if (sent < 0 && sent !== EAGAIN && sent !== EINTR) return sent;
    this.#keep(io, this.#below.sent, Math.max(0, sent), end);
    return 0;
  }

  /** Only while something is pending. */
  flush(io: WireIo): number {
    const pending = this.#pending;
    if (pending === null) return 0;
    this.memory.wire.set(pending);
    const sent = this.#below.send(io, pending.length);
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

  drop(io: WireIo): void {
    io.bufferedBytes -= this.#pending?.length ?? 0;
    this.#pending = null;
  }
}
