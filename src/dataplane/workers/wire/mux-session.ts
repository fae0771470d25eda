import { performance } from "node:perf_hooks";
import { BUFFER_BYTES, EAGAIN, EINTR, WRITABLE } from "#platform/linux/relay-calls.ts";
import { TICK_MS } from "#transport/mux/session.ts";
import type { MuxFraming, SessionStream } from "./mux-framing.ts";
import { MuxInput, type MuxListener } from "./mux-input.ts";
import { MuxOutput } from "./mux-output.ts";
import { SessionEnd } from "./session-end.ts";
import { StreamMemory } from "./stream-memory.ts";
import { LONGEST_TURN_MS, type Wire, type WireIo } from "./wire.ts";

/** What is read in one turn, before the streams have theirs. */
const TURN_BYTES = 256 * 1024;
/** A read of so much is followed by a larger one, where the frames in it were few. */
const READ_BYTES = 64 * 1024;
/** Many take longer. */
const QUICK_MS = 1;
/** A read counts for so much at least. */
const LEAST_BYTES = 16 * 1024;
/**
 * Many streams over the wire of one connection. What comes is kept at the streams until their tasks have their turn; what they
 * say is gathered until the session has its own.
 */
export abstract class MuxSession<Stream extends SessionStream = SessionStream> implements MuxListener {
  readonly framing: MuxFraming;
  protected readonly inner: Wire;
  /** Those that the peer has heard of. */
  protected readonly opened = new Map<number, Stream>();
  protected readonly all = new Set<Stream>();
  protected readonly input: MuxInput;
  readonly #idleMs: number;
  readonly #output: MuxOutput;
  /** The session wants a turn. */
  readonly #wake: () => void;
  readonly memory: StreamMemory;
  #isRunning = false;
  /** Its streams have found it blocked, perhaps. */
  #wasBlocked = false;
  /** Of all streams, and not told them yet. */
  #windowChange = 0;
  /** The peer has not looked at streams behind it. */
  #lastId = Infinity;
  #idleSinceMs = performance.now();
  #tickAtMs = performance.now() + TICK_MS;
  #isRetiring = false;
  readonly #end = new SessionEnd();
  #isDead = false;

  /** `idleMs`: how long it stays without streams. */
  constructor(inner: Wire, framing: MuxFraming, idleMs: number, wake: () => void) {
    this.inner = inner;
    this.framing = framing;
    this.#idleMs = idleMs;
    this.#output = new MuxOutput(inner, framing);
    this.memory = new StreamMemory(framing.mostHeldBytes);
    this.#wake = wake;
    this.input = new MuxInput(framing, this.opened, this);
  }

  /** Those that are open, or about to be. */
  get streams(): number {
    return this.all.size;
  }

  /** It takes further streams. */
  get isOpen(): boolean {
    return !this.#isDead && !this.#isRetiring;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Nothing is left to be done with it. */
  get isOver(): boolean {
    return this.#isDead || this.#end.isOver;
  }

  get takesData(): boolean {
    return this.#output.takesData;
  }

  /** Its peer may be anybody, and is owed little: until then. */
  protected awaitProof(): void {
    this.#output.isUnproved = true;
  }

  /** Its peer has proved who it is. */
  prove(): void {
    this.#output.isUnproved = false;
  }

  /** The peer opens a stream. */
  abstract onOpen(id: number): boolean;
  /** The peer has ended the connection. */
  protected abstract onEnd(): void;
  /** The peer has said something. */
  protected onHeard(): void {}
  /** The last of its streams has gone. */
  protected onUnused(): void {}
  /** Now and then, while there are streams. */
  protected onTick(_nowMs: number): void {}

  // What concerns all streams is told them once a turn, whatever the peer has said how often.

  /** What a stream that begins may send. */
  get firstWindow(): number {
    return this.framing.sendWindow - this.#windowChange;
  }

  /** Of all streams' windows, and not told them yet. */
  get windowChange(): number {
    return this.#windowChange;
  }

  onFirstWindow(change: number): void {
    this.#windowChange += change;
  }

  onRoom(): void {
    this.#wasBlocked = true;
  }

  /** False: windows that cannot be. */
  #tellAll(): boolean {
    const [change, lastId] = [this.#windowChange, this.#lastId];
    this.#windowChange = 0;
    this.#lastId = Infinity; // it opens no further ones
    let isRight = true;
    if (change !== 0) for (const stream of this.all) isRight = stream.widen(change) && isRight;
    if (lastId !== Infinity) for (const stream of this.all) if (stream.id > lastId) stream.onReset();
    return isRight;
  }

  // For its streams.

  writeData(io: WireIo, id: number, size: number, most: number): number {
    const taken = this.#output.writeData(io, id, size, most);
    this.#onSaid();
    if (taken === most || !this.#output.takesData) this.#sendBack(id);
    return taken;
  }

  /** Who has filled the connection, or its window, is the last one to write once it takes more. */
  #sendBack(id: number): void {
    const stream = this.opened.get(id);
    if (stream !== undefined && this.all.delete(stream)) this.all.add(stream);
  }

  say(frame: Uint8Array): void {
    if (this.#isDead || this.#end.isBegun) return;
    this.#output.say(frame);
    this.#onSaid();
  }

  /** Short data of a stream, with the next write. */
  sayData(id: number, data: Uint8Array): void {
    const head = Buffer.alloc(this.framing.dataHeadBytes);
    this.framing.writeDataHead(head, 0, id, data.length);
    this.say(head);
    this.say(data);
  }

  #onSaid(): void {
    this.#wasBlocked ||= !this.#output.takesData;
    if (!this.#isRunning) this.#wake();
  }

  /** Bytes that wait for readers have grown (or shrunk, negative) by so many. */
  holds(bytes: number): void {
    if (this.memory.count(bytes)) this.#wake();
    if (bytes < 0) this.share();
  }

  share(): void {
    const frame = this.framing.encodeShared(this.memory.heldBytes);
    if (frame !== null) this.say(frame);
  }

  /** It is over for its user. */
  leave(stream: Stream): void {
    if (!this.all.delete(stream)) return;
    const { id, endSent, farEnded, isReset } = stream;
    this.opened.delete(id);
    this.input.forget(stream);
    const frame = id === 0 || isReset ? null : this.framing.encodeLeft(id, endSent, farEnded);
    if (frame !== null) this.say(frame);
    if (this.all.size > 0) return;
    this.#idleSinceMs = performance.now();
    this.onUnused();
    if (this.#isRetiring) this.retire();
  }

  /** Opens no further streams, and ends with its last one. Those behind `lastId` are over. */
  retire(lastId = Infinity): void {
    this.#isRetiring = true;
    this.#lastId = Math.min(this.#lastId, lastId);
    if (this.all.size === 0) this.#close();
  }

  #close(): void {
    if (this.#end.isBegun || this.#isDead) return;
    this.closeWith(false);
  }

  /** What it has said until now goes out still. */
  protected closeWith(isFault: boolean): void {
    this.say(this.framing.encodeFinal(isFault));
    this.#end.begin();
  }

  // For its connection.

  /** Of its socket. False: it is nothing new. */
  onEvents(events: number): boolean {
    const isWaiting = !this.#output.isOwing && this.inner.writable && !this.#end.isBegun;
    if (events === WRITABLE && isWaiting) return false;
    if (events !== 0) this.inner.onEvents(events);
    return true;
  }

  /** Reads and writes what it can. True: there is more at once. */
  turn(io: WireIo): boolean {
    this.#isRunning = true;
    this.#flush(io);
    this.#read(io);
    if (!this.#isDead && !this.#tellAll()) this.#fail();
    if (performance.now() >= this.#tickAtMs) this.#tick();
    this.#flush(io);
    this.#isRunning = false;
    if (this.#end.isBegun) this.#end.turn(io, this.inner, this.#output);
    io.wakeAtMs = Math.min(io.wakeAtMs, this.#tickAtMs, this.#end.atMs);
    return this.#reads || (!this.#isDead && this.#output.canFlush);
  }

  get #reads(): boolean {
    return this.inner.readable && !this.memory.isFull && !this.#end.isBegun && !this.#isDead;
  }

  #flush(io: WireIo): void {
    if (this.#isDead) return;
    this.#output.flush(io);
    if (this.#output.hasFailed) return this.die();
    const isBlocked = !this.#output.takesData;
    if (this.#wasBlocked && !isBlocked) for (const stream of this.all) stream.wake();
    this.#wasBlocked = isBlocked;
  }

  #read(io: WireIo): void {
    const startMs = performance.now();
    let size = READ_BYTES;
    for (let spent = 0; spent < TURN_BYTES && this.#reads;) {
      const bytes = this.inner.read(io, size);
      if (bytes === EAGAIN) return;
      if (bytes === 0) return this.onEnd();
      if (bytes < 0 && bytes !== EINTR) return this.die();
      if (bytes > 0) this.onHeard();
      if (!this.input.take(io.calls.buffer, bytes)) return this.#fail();
      const tookMs = performance.now() - startMs;
      if (tookMs >= LONGEST_TURN_MS) return;
      size = bytes >= READ_BYTES && tookMs < QUICK_MS ? BUFFER_BYTES : READ_BYTES;
      spent += Math.max(LEAST_BYTES, bytes);
    }
  }

  #tick(): void {
    const nowMs = performance.now();
    this.#tickAtMs = nowMs + TICK_MS;
    if (this.all.size === 0) {
      if (nowMs - this.#idleSinceMs > this.#idleMs) this.retire();
      return;
    }
    this.onTick(nowMs);
    const frame = this.framing.keepAlive();
    if (frame === null) this.#fail();
    else this.#output.say(frame);
  }

  /** The peer has broken the protocol, or answers no more. */
  #fail(): void {
    this.#isRetiring = true;
    if (!this.#end.isBegun) this.closeWith(true);
    for (const stream of this.all) stream.onReset();
  }

  /** Its connection has failed, or ended. */
  protected die(): void {
    this.#isDead = true;
    for (const stream of this.all) stream.onLost();
  }

  drop(io: WireIo): void {
    if (!this.#isDead) this.die();
    this.#output.drop(io);
    this.inner.drop(io);
  }
}
