import { itemAt } from "#lib/at.ts";
import { BUFFER_BYTES, EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { BROKEN, RECORD_BYTES } from "#platform/linux/ssl.ts";
import { type PaddingScheme, sessionFrames as codes } from "#protocols/begin-wire.ts";
import { encodeFrame, PSH } from "#protocols/shared/stream-frame.ts";
import { FrameReader, type FrameReceiver } from "./frame-reader.ts";
import { FrameWriter } from "./frame-writer.ts";
import type { KeptSessionHost } from "./kept-client.ts";
import { KeptStream, type StreamOwner } from "./kept-stream.ts";
import type { Wire, WireIo } from "./wire.ts";

/** Streams at once in one session, of which some have ended and are still being dialled; one more is refused, the session continues. */
const MOST_STREAMS = 1024;
/** Answers that a peer asked for and does not read; beyond, it is flooding us and the session is closed. */
const MOST_UNSENT_BYTES = 1 << 20;
/** Headers of one write. */
const HEADERS_BYTES = 64;

/**
 * The session of a listener's client, over the wire of its connection. Frames say which stream they are for; there is no
 * flow control, so a stream that is not read holds up all, as the protocol has it, once it has so much waiting. Small frames
 * wait for the session's turn and go out as one write. It ends once: then `isDead`.
 */
export class KeptSession implements FrameReceiver, StreamOwner {
  readonly inner: Wire;
  readonly host: KeptSessionHost;
  readonly #scheme: PaddingScheme;
  readonly #streams = new Map<number, KeptStream>();
  /** How many slots its streams have: one that has ended keeps its own until its dial has, too. */
  #slots = 0;
  /** Null: there is none, or more than one. */
  #only: KeptStream | null = null;
  readonly #reader = new FrameReader();
  readonly #writer: FrameWriter;
  /** Those that have as much waiting as they may. */
  readonly #full = new Set<KeptStream>();
  /** 0: no settings have come. */
  #clientVersion = 0;
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  /** Streams have to wait for the wire. */
  #isHeldUp = false;
  /** The stream whose data stays in the thread's buffer, at its start, and how much that is. */
  #direct: KeptStream | null = null;
  #directBytes = 0;
  #isDead = false;
  #isOrderly = false;

  constructor(inner: Wire, scheme: PaddingScheme, host: KeptSessionHost) {
    this.inner = inner;
    this.#scheme = scheme;
    this.#writer = new FrameWriter(inner);
    this.host = host;
  }

  /** Nothing is read of it any more. */
  get isDead(): boolean {
    return this.#isDead;
  }

  /** It has not failed: its client is told of the end. */
  get isOrderly(): boolean {
    return this.#isOrderly;
  }

  /** The only stream, where it reads the session by itself; null: the session's own turn does. */
  get reader(): KeptStream | null {
    if (this.#full.size > 0 || this.#isDead) return null;
    return this.#only?.isRelayed === true ? this.#only : null;
  }

  /** Its own turn has something to read. */
  get isReadable(): boolean {
    return this.inner.readable && !this.#isDead && this.#full.size === 0 && this.reader === null;
  }

  get hasUnsent(): boolean {
    return this.#unsentBytes > 0 || this.inner.pending;
  }

  /** What has come goes to the streams that it is for. EAGAIN: nothing has. */
  pull(io: WireIo): number {
    const bytes = this.#readInner(io, RECORD_BYTES);
    if (bytes > 0) this.#reader.read(io.calls.buffer, bytes, this);
    return bytes;
  }

  /** Data of its only stream to the start of the thread's buffer. EINTR: there was something else. */
  readFor(stream: KeptStream, io: WireIo, size: number): number {
    const bytes = this.#readInner(io, Math.min(size, BUFFER_BYTES));
    if (bytes <= 0) return bytes;
    this.#direct = stream;
    this.#directBytes = 0;
    this.#reader.read(io.calls.buffer, bytes, this);
    this.#direct = null;
    return this.#directBytes || EINTR;
  }

  #readInner(io: WireIo, size: number): number {
    if (this.#isDead) return BROKEN;
    const bytes = this.inner.read(io, size);
    if (bytes > 0 || bytes === EAGAIN || bytes === EINTR) return bytes;
    this.#end(bytes === 0);
    return BROKEN;
  }

  #end(isOrderly: boolean): void {
    this.#isOrderly = isOrderly && (this.#isOrderly || !this.#isDead);
    if (this.#isDead) return;
    this.#isDead = true;
    this.host.wake();
  }

  onData(id: number, buffer: Uint8Array, from: number, to: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    if (stream !== this.#direct) return this.#arrive(stream, buffer, from, to);
    buffer.copyWithin(this.#directBytes, from, to);
    this.#directBytes += to - from;
  }

  #arrive(stream: KeptStream, buffer: Uint8Array, from: number, to: number): void {
    if (!stream.isNamed) this.#name(stream, buffer.slice(from, to));
    else if (stream.arrive(buffer, from, to)) this.#full.add(stream);
  }

  #name(stream: KeptStream, data: Uint8Array): void {
    const named = stream.name(data);
    if (named === "faulty") this.#end(false);
    else if (named === "named" && !this.#enter(stream)) this.#refuse(stream);
  }

  /** False: the session has as many slots as it may, or its thread has none. */
  #enter(stream: KeptStream): boolean {
    if (this.#slots >= MOST_STREAMS) return false;
    this.#slots++;
    const hasSlot = this.host.onStream(stream);
    if (!hasSlot) this.#slots--;
    return hasSlot;
  }

  onDropped(): void {
    this.#slots--;
  }

  #refuse(stream: KeptStream): void {
    this.answer(stream, "too many streams");
    stream.leave();
  }

  /** It has room for data again. */
  onRoom(stream: KeptStream): void {
    if (this.#full.delete(stream)) this.host.wake();
  }

  onFrame(command: number, id: number, data: Buffer): void {
    if (command === codes.SYN) this.#open(id);
    else if (command === codes.SETTINGS && data.length > 0) this.#configure(data);
    else if (command === codes.HEARTBEAT_REQUEST) this.#say(encodeFrame(codes.HEARTBEAT_RESPONSE, id));
    else if (command === codes.ALERT) this.#end(true);
    else if (command === codes.FIN) this.#finished(id);
  }

  #configure(data: Buffer): void {
    const settings = codes.decodeSettings(data);
    const { md5, raw } = this.#scheme;
    this.#clientVersion = codes.versionIn(settings);
    // Order matters to clients: scheme, settings, then the answers to streams.
    if (settings.get("padding-md5") !== md5) this.#say(encodeFrame(codes.UPDATE_SCHEME, 0, raw));
    if (this.#clientVersion >= 2)
      this.#say(encodeFrame(codes.SERVER_SETTINGS, 0, codes.encodeSettings({ v: "2" })));
  }

  #open(id: number): void {
    if (this.#streams.has(id)) return;
    if (this.#clientVersion === 0) {
      this.#say(encodeFrame(codes.ALERT, 0, Buffer.from("client did not send its settings")));
      return this.#end(true);
    }
    const stream = new KeptStream(this, id);
    this.#streams.set(id, stream);
    this.#lookForOnly();
    if (this.#streams.size > MOST_STREAMS) this.#refuse(stream);
  }

  /** What comes next may have another reader than what came before. */
  #lookForOnly(): void {
    const [first = null] = this.#streams.size === 1 ? this.#streams.values() : [];
    this.#only = first;
    this.host.wake();
  }

  #finished(id: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    this.#forget(stream);
    stream.onFarEnd();
  }

  /** What became of a dial, where the client wants to know it; no problem is success. */
  answer(stream: KeptStream, problem: string): void {
    if (this.#clientVersion >= 2) this.#say(encodeFrame(codes.SYNACK, stream.id, Buffer.from(problem)));
  }

  /** The stream is over for both sides. */
  finish(stream: KeptStream): void {
    this.#say(encodeFrame(codes.FIN, stream.id));
    this.#forget(stream);
  }

  #forget(stream: KeptStream): void {
    this.#streams.delete(stream.id);
    this.#full.delete(stream);
    this.#lookForOnly();
  }

  get isWritable(): boolean {
    return this.inner.writable && !this.inner.pending;
  }

  /** The first `size` bytes of the thread's buffer; all of them, or an errno. */
  writeData(io: WireIo, stream: KeptStream, size: number): number {
    if (this.#isDead) return BROKEN;
    const written =
      size < RECORD_BYTES ? this.#writeSmall(io, stream, size) : this.#writeLarge(io, stream, size);
    return this.#sent(written) < 0 ? BROKEN : size;
  }

  #writeSmall(io: WireIo, stream: KeptStream, size: number): number {
    this.#say(encodeFrame(PSH, stream.id, io.calls.buffer.subarray(0, size)));
    return this.#unsentBytes < RECORD_BYTES ? 0 : this.#writer.write(io, this.#takeUnsent());
  }

  #writeLarge(io: WireIo, stream: KeptStream, size: number): number {
    const { buffer } = io.calls;
    const isRoomy = this.#unsentBytes + size + HEADERS_BYTES <= buffer.length;
    if (isRoomy) return this.#writer.writeData(io, stream.id, size, this.#takeUnsent());
    const data = buffer.slice(0, size);
    const written = this.#writer.write(io, this.#takeUnsent());
    buffer.set(data);
    return written < 0 ? written : this.#writer.writeData(io, stream.id, size);
  }

  #sent(written: number): number {
    if (written < 0) this.#end(false);
    if (this.inner.pending) this.#isHeldUp = true;
    return written;
  }

  #say(frame: Buffer): void {
    if (this.#isDead) return;
    this.#unsent.push(frame);
    this.#unsentBytes += frame.length;
    if (this.#unsentBytes > MOST_UNSENT_BYTES) this.#end(false);
    this.host.wake();
  }

  #takeUnsent(): Buffer {
    const frames = this.#unsent;
    this.#unsent = [];
    this.#unsentBytes = 0;
    return frames.length === 1 ? itemAt(frames, 0) : Buffer.concat(frames);
  }

  /** Sends what the wire takes of all that is to be said. */
  flush(io: WireIo): void {
    const { inner } = this;
    while (inner.pending && inner.writable) {
      const flushed = inner.flush(io);
      if (flushed < 0 && flushed !== EAGAIN && flushed !== EINTR) return this.#end(false);
    }
    if (inner.pending) return;
    if (this.#unsentBytes > 0) this.#sent(this.#writer.write(io, this.#takeUnsent()));
    if (inner.pending || !this.#isHeldUp) return;
    this.#isHeldUp = false;
    for (const stream of this.#streams.values()) stream.wake();
  }

  /** Its streams end as by a fault. */
  cut(): void {
    this.#isDead = true;
    for (const stream of this.#streams.values()) stream.cut();
    this.#streams.clear();
    this.#full.clear();
  }
}
