import { BUFFER_BYTES, EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { ByteStore } from "./byte-store.ts";
import type { MuxFraming } from "./mux-framing.ts";
import type { Wire, WireIo } from "./wire.ts";

/** Data frames up to here wait for the end of the turn, with those of other streams. */
const SMALL_BYTES = 8 * 1024;
/** With so much gathered no more data is taken. */
const MOST_GATHERED_BYTES = 64 * 1024;
/** Of a peer that asks without reading; beyond, its connection ends. */
const MOST_OWED_BYTES = 1024 * 1024;
/** The same of a peer that may be anybody, while it does not read. */
const MOST_UNPROVED_BYTES = 64 * 1024;
/** Of the longest header there is. */
const HEAD_ROOM = 24;

/** The writes of a session of many streams. What is small is gathered, and goes out in one write when the session has its turn. */
export class MuxOutput {
  readonly #inner: Wire;
  readonly #framing: MuxFraming;
  readonly #gathered = new ByteStore();
  /** What the wire has not taken; goes before all else. */
  readonly #unsent = new ByteStore();
  readonly #head = new Uint8Array(HEAD_ROOM);
  #hasFailed = false;
  /** The peer may be anybody. */
  isUnproved = false;

  constructor(inner: Wire, framing: MuxFraming) {
    this.#inner = inner;
    this.#framing = framing;
  }

  /** It has failed, or its peer asks without reading. */
  get hasFailed(): boolean {
    const { size } = this.#gathered;
    if (this.#hasFailed || size > MOST_OWED_BYTES) return true;
    return this.isUnproved && size > MOST_UNPROVED_BYTES && this.#isBlocked;
  }

  get #isBlocked(): boolean {
    return this.#unsent.size > 0 || this.#inner.pending || !this.#inner.writable;
  }

  get takesData(): boolean {
    return !this.#isBlocked && this.#gathered.size < MOST_GATHERED_BYTES;
  }

  /** Something waits to go out. */
  get isOwing(): boolean {
    return this.#gathered.size > 0 || this.#unsent.size > 0 || this.#inner.pending;
  }

  /** `flush` may get rid of something now. */
  get canFlush(): boolean {
    return this.#inner.writable && this.isOwing;
  }

  /** With the next write. */
  say(frame: Uint8Array): void {
    this.#gathered.push(frame);
  }

  /**
   * Of the first `size` bytes of the thread's buffer at most `most`, as data of the stream: how many were taken; the rest lies
   * as it was. Only while it `takesData`.
   */
  writeData(io: WireIo, id: number, size: number, most: number): number {
    const wanted = Math.min(size, most);
    return wanted <= SMALL_BYTES ? this.#gatherData(io, id, wanted) : this.#writeFrames(io, id, size, wanted);
  }

  #gatherData(io: WireIo, id: number, size: number): number {
    const { dataHeadBytes } = this.#framing;
    this.#framing.writeDataHead(this.#head, 0, id, size);
    this.#gathered.push(this.#head, 0, dataHeadBytes);
    this.#gathered.push(io.calls.buffer, 0, size);
    return size;
  }

  /** Behind what was gathered, in the same write: the last frame moves up first. */
  #writeFrames(io: WireIo, id: number, size: number, wanted: number): number {
    const { buffer } = io.calls;
    const { dataHeadBytes: headBytes, mostBodyBytes } = this.#framing;
    const start = this.#gathered.size;
    const room = BUFFER_BYTES - start; // wires below have what lies behind it for heads of their own
    const taken = Math.min(wanted, room - Math.ceil(room / (headBytes + mostBodyBytes)) * headBytes);
    const rest = taken < size ? buffer.slice(taken, size) : null;
    const count = Math.ceil(taken / mostBodyBytes);
    for (let index = count - 1; index >= 0; index--) {
      const from = index * mostBodyBytes;
      const to = Math.min(from + mostBodyBytes, taken);
      const at = start + from + index * headBytes;
      buffer.copyWithin(at + headBytes, from, to);
      this.#framing.writeDataHead(buffer, at, id, to - from);
    }
    this.#gathered.take(buffer, start);
    this.#pass(io, start + taken + count * headBytes);
    if (rest !== null) buffer.set(rest, taken);
    return taken;
  }

  /** What lies at the start of the thread's buffer: all of it. */
  #pass(io: WireIo, size: number): void {
    const written = this.#inner.write(io, size);
    if (written === size) return;
    if (written < 0 && written !== EAGAIN && written !== EINTR) this.#hasFailed = true;
    else this.#keep(io, Math.max(0, written), size);
  }

  #keep(io: WireIo, from: number, to: number): void {
    this.#unsent.push(io.calls.buffer, from, to);
    io.bufferedBytes += to - from;
  }

  /** As much as the wire takes. */
  flush(io: WireIo): void {
    while (!this.hasFailed && this.canFlush) {
      if (this.#inner.pending) this.#flushInner(io);
      else if (this.#unsent.size > 0) {
        const { buffer } = io.calls;
        const size = this.#unsent.take(buffer, buffer.length); // all of it: no write is longer
        io.bufferedBytes -= size;
        this.#pass(io, size);
      } else this.#pass(io, this.#gathered.take(io.calls.buffer, BUFFER_BYTES));
    }
  }

  #flushInner(io: WireIo): void {
    const flushed = this.#inner.flush(io);
    if (flushed < 0 && flushed !== EAGAIN && flushed !== EINTR) this.#hasFailed = true;
  }

  drop(io: WireIo): void {
    io.bufferedBytes -= this.#unsent.size;
  }
}
