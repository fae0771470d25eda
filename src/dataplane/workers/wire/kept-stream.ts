import { performance } from "node:perf_hooks";
import { byteAt } from "#lib/at.ts";
import { EAGAIN, EINTR, FAULT, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import { AskedAddress } from "./asked-address.ts";
import { ByteStore } from "./byte-store.ts";
import type { KeptClientStream, KeptSessionHost } from "./kept-client.ts";
import type { Wire, WireIo } from "./wire.ts";

/** So much may wait for what the stream leads to; then nothing more of its session is read. */
const MOST_WAITING_BYTES = 64 * 1024;
/** How long the far side may still speak when the client has ended the stream, and all is handed on that it had said. */
const GRACE_MS = 1_000;

const NOTHING = new Uint8Array(0);

/** The session of a stream. Errnos are those of its wire. */
export interface StreamOwner {
  readonly inner: Pick<Wire, "readable">;
  readonly host: Pick<KeptSessionHost, "wakeStream">;
  /** The stream that reads the session by itself; null: none does. */
  readonly reader: KeptStream | null;
  readonly isWritable: boolean;
  /** Data of that stream to the start of the thread's buffer. EINTR: there was something else. */
  readFor(stream: KeptStream, io: WireIo, size: number): number;
  /** What has come goes to the streams that it is for. EAGAIN: nothing has. */
  pull(io: WireIo): number;
  /** The first `size` bytes of the thread's buffer; all of them, or an errno. */
  writeData(io: WireIo, stream: KeptStream, size: number): number;
  /** What became of its dial; no problem is success. */
  answer(stream: KeptStream, problem: string): void;
  /** It has room for data again. */
  onRoom(stream: KeptStream): void;
  /** It is over for both sides. */
  finish(stream: KeptStream): void;
  /** The slot of a stream is free again. */
  onDropped(): void;
}

/** One stream of a client's session, in a slot of its own. Either side's FIN ends both directions. */
export class KeptStream implements KeptClientStream {
  readonly fd = -1;
  readonly bareSource = -1;
  readonly bareTarget = -1;
  readonly hungUp = false;
  readonly pending = false;
  readonly id: number;
  /** -1: it has none yet, or any more. */
  slot = -1;
  readonly #origin: StreamOwner;
  readonly #asked = new AskedAddress(0);
  isRelayed = false;
  /** Null: it is over for both sides. */
  #session: StreamOwner | null;
  /** Null: nothing waits. */
  #waiting: ByteStore | null = null;
  /** The result of all reads behind what waits; null: reading goes on. */
  #last: number | null = null;
  #hasFarEnded = false;
  /** Its session has failed: it ends at once, whatever waits. */
  #isCut = false;
  /** Infinity: it does not count yet. */
  #graceAtMs = Infinity;
  /** What has come of an answer that is said by the far side in front of all else; null: there is none. */
  #answer: Uint8Array | null = null;

  constructor(session: StreamOwner, id: number) {
    this.#origin = this.#session = session;
    this.id = id;
  }

  get request(): Uint8Array {
    return this.#asked.bytes;
  }

  /** It was taken out of the session already. */
  consume(size: number): number {
    return size;
  }

  get isNamed(): boolean {
    return this.#asked.isWhole;
  }

  /** First data, which begins with the address. */
  name(data: Uint8Array): "named" | "incomplete" | "faulty" {
    const size = this.#asked.take(data);
    if (size < 0) return "faulty";
    if (size < data.length) this.arrive(data, size, data.length);
    return this.isNamed ? "named" : "incomplete";
  }

  get #waitingBytes(): number {
    return this.#waiting?.size ?? 0;
  }

  /** What lies between the two indices. True: it has as much waiting as it may. */
  arrive(buffer: Uint8Array, from: number, to: number): boolean {
    this.#waiting ??= new ByteStore();
    this.#waiting.push(buffer, from, to);
    if (this.isRelayed) this.wake();
    return this.#waitingBytes >= MOST_WAITING_BYTES;
  }

  wake(): void {
    if (this.slot >= 0) this.#session?.host.wakeStream(this.slot, READABLE | WRITABLE);
  }

  /** What relays it says in front of all else what its dial came to: LENGTH(1) PROBLEM, without one for success. */
  awaitAnswer(): void {
    this.#answer = NOTHING;
  }

  begin(): void {
    this.isRelayed = true;
    if (this.#answer === null) this.#session?.answer(this, "");
  }

  /** It reads the session by itself. */
  get #isReader(): boolean {
    const session = this.#session;
    return session !== null && session.inner.readable && session.reader === this;
  }

  get readable(): boolean {
    return this.#waitingBytes > 0 || this.#last !== null || this.#isReader;
  }

  get writable(): boolean {
    return this.#session?.isWritable ?? true;
  }

  get outlivesSocket(): boolean {
    return !this.#isCut;
  }

  onEvents(): void {} // it has no socket

  read(io: WireIo, size: number): number {
    if (this.#waitingBytes > 0) return this.#readWaiting(io, size);
    if (this.#last !== null) return this.#last;
    return this.#isReader && this.#session !== null ? this.#session.readFor(this, io, size) : EAGAIN;
  }

  #readWaiting(io: WireIo, size: number): number {
    const bytes = this.#waiting?.take(io.calls.buffer, size) ?? 0;
    if (this.#waitingBytes === 0) this.#waiting = null;
    if (this.#waitingBytes < MOST_WAITING_BYTES) this.#session?.onRoom(this);
    return bytes;
  }

  available(io: WireIo): number {
    if (this.#waitingBytes === 0 && this.#last === null) {
      if (!this.#isReader || this.#session === null) return EAGAIN;
      const bytes = this.#session.pull(io);
      if (this.#waitingBytes === 0) return this.#last ?? (bytes > 0 ? EINTR : bytes);
    }
    return this.#waitingBytes > 0 ? this.#waitingBytes : (this.#last ?? EAGAIN);
  }

  /** All of it; where the stream is over nothing becomes of it. */
  write(io: WireIo, size: number): number {
    const answered = this.#answer === null ? 0 : this.#takeAnswer(io.calls.buffer, size);
    const left = size - answered;
    if (this.#session === null || left === 0) return size;
    const written = this.#session.writeData(io, this, left);
    return written < 0 ? written : size;
  }

  /** How much of the buffer it was; the rest moves to its start. */
  #takeAnswer(buffer: Uint8Array, size: number): number {
    const before = this.#answer ?? NOTHING;
    const bytes = Buffer.concat([before, buffer.subarray(0, size)]);
    const end = 1 + byteAt(bytes, 0);
    if (bytes.length < end) {
      this.#answer = bytes;
      return size;
    }
    this.#answer = null;
    this.#session?.answer(this, bytes.toString("utf8", 1, end));
    buffer.set(bytes.subarray(end));
    return end - before.length;
  }

  flush(): number {
    return EINTR;
  }

  endWriting(): number {
    this.leave();
    this.#last ??= 0;
    return 0;
  }

  /** FIN; its session has forgotten it. */
  onFarEnd(): void {
    const session = this.#session;
    this.#last ??= 0;
    this.#hasFarEnded = true;
    if (this.slot >= 0) session?.host.wakeStream(this.slot, READABLE);
    this.#session = null;
  }

  isOver(io: WireIo): boolean {
    if (!this.#hasFarEnded) return false;
    const nowMs = performance.now();
    if (this.#graceAtMs === Infinity) this.#graceAtMs = nowMs + GRACE_MS;
    io.wakeAtMs = Math.min(io.wakeAtMs, this.#graceAtMs);
    return nowMs >= this.#graceAtMs;
  }

  /** Its session has failed, and what waits is thrown away. */
  cut(): void {
    const session = this.#session;
    this.#session = null;
    this.#isCut = true;
    this.#last = BROKEN;
    this.#waiting = null;
    if (this.slot >= 0) session?.host.wakeStream(this.slot, FAULT);
  }

  /** Says FIN where it was not said. */
  leave(): void {
    const session = this.#session;
    this.#session = null;
    session?.finish(this);
  }

  drop(): void {
    this.leave();
    if (this.slot < 0) return;
    this.slot = -1;
    this.#origin.onDropped();
  }
}
