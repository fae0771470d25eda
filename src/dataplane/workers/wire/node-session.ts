import type { WireKind } from "#core/wire-state.ts";
import type { SessionRecipe } from "#core/wire-recipe.ts";
import { BUFFER_BYTES, EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import { type PaddingScheme, preamblePadding, sessionFrames as codes } from "#protocols/begin-wire.ts";
import { PSH } from "#protocols/shared/stream-frame.ts";
import { FrameReader, type FrameReceiver } from "./frame-reader.ts";
import { FrameWriter } from "./frame-writer.ts";
import type { Wire, WireIo } from "./wire.ts";

const VERSION = 2;
/** What one look at what is there passes over at most: a peer decides how little is in each frame. */
const MOST_FRAMES = 64;
/** Questions of a peer that are not answered yet; beyond, it is flooding us. */
const MOST_BEATS = 1024;
const NO_FRAMES = Buffer.alloc(0);

/** What of a session is registered with the thread: what its wire was made of. */
export interface SessionOrigin {
  readonly kind: WireKind;
  readonly numbers: readonly number[];
}

/** The stream that is open in a session. */
export interface SessionEvents {
  /** SYNACK; no problem is success. */
  onAnswer(problem: string): void;
  /** FIN: the session has forgotten it. */
  onFarEnd(): void;
}

/** What a session tells those that keep it. */
export interface SessionSettings {
  readonly recipe: SessionRecipe;
  /** Its first writes are padded by. */
  readonly scheme: PaddingScheme;
  /** Grows from session to session: the youngest idle one is used first. */
  readonly sequence: number;
  /** The server wants another scheme for new sessions, as it came. */
  readonly onScheme: (raw: Buffer) => void;
}

/**
 * A session of frames to the server of a node, with one stream at a time, over the wire of its connection. Counts and
 * errors are those of wires. It ends once: then `isDead`.
 */
export class NodeSession implements FrameReceiver {
  readonly inner: Wire;
  readonly origin: SessionOrigin;
  readonly #settings: SessionSettings;
  readonly #writer: FrameWriter;
  #nextId = 1;
  #serverVersion = 1;
  /** 0: no stream is open. */
  #stream = 0;
  #events: SessionEvents | null = null;
  readonly #reader = new FrameReader();
  /** Data of the stream at the start of the thread's buffer, of what is being read. */
  #dataBytes = 0;
  /** Streams whose heartbeats are still to be answered. */
  #beats: number[] = [];
  #isDead = false;

  constructor(inner: Wire, origin: SessionOrigin, settings: SessionSettings) {
    this.inner = inner;
    this.origin = origin;
    this.#settings = settings;
    this.#writer = new FrameWriter(inner, { shapes: settings.scheme, writes: 0 });
  }

  get sequence(): number {
    return this.#settings.sequence;
  }

  get recipe(): SessionRecipe {
    return this.#settings.recipe;
  }

  /** Its connection has failed, or the server has said that it is over. */
  get isDead(): boolean {
    return this.#isDead;
  }

  /** The next stream is not the first, and its server says whether it could dial. */
  get answers(): boolean {
    return this.#nextId > 1 && this.#serverVersion >= VERSION;
  }

  /** What opens its stream goes in writes of its own, as the scheme counts them. */
  get opensAlone(): boolean {
    return this.#stream === 1 || this.#writer.isPadding;
  }

  get pending(): boolean {
    return this.inner.pending || this.#beats.length > 0;
  }

  /** What opens a stream is still to be sent: by `say`, or in front of its first data. */
  open(events: SessionEvents): void {
    this.#stream = this.#nextId++;
    this.#events = events;
  }

  /** What opens the stream, in as many writes as the scheme has them. 0, or an errno. */
  sayOpening(io: WireIo, target: Uint8Array): number {
    const [syn, address] = [codes.encodeFrame(codes.SYN, this.#stream), this.#addressed(target)];
    if (!this.opensAlone) return this.#write(io, Buffer.concat([syn, address]));
    if (this.#stream > 1) return this.#write(io, syn) || this.#write(io, address);
    const { recipe, scheme } = this.#settings;
    const preamble = codes.encodePreamble(Buffer.from(recipe.hash), preamblePadding(scheme));
    const settings = codes.encodeSettings({
      v: `${VERSION}`,
      client: recipe.client,
      "padding-md5": scheme.md5,
    });
    const first = Buffer.concat([codes.encodeFrame(codes.SETTINGS, 0, settings), syn, address]);
    return this.#see(this.#writer.writeAsIs(io, preamble)) || this.#write(io, first);
  }

  #addressed(target: Uint8Array): Buffer {
    return codes.encodeFrame(PSH, this.#stream, target);
  }

  /** The first `size` bytes of the thread's buffer; `target`: that of a stream that is not opened yet. 0, or an errno. */
  writeData(io: WireIo, size: number, target: Uint8Array | null): number {
    if (this.#isDead) return BROKEN;
    const head =
      target === null
        ? NO_FRAMES
        : Buffer.concat([codes.encodeFrame(codes.SYN, this.#stream), this.#addressed(target)]);
    return this.#see(this.#writer.writeData(io, this.#stream, size, head));
  }

  /** Forgets the stream, which may have been ended by the server. `isOpened`: the server knows of it. */
  leave(io: WireIo, isOpened: boolean): void {
    const stream = this.#stream;
    this.#stream = 0;
    this.#events = null;
    if (stream !== 0 && isOpened && !this.#isDead) this.#write(io, codes.encodeFrame(codes.FIN, stream));
  }

  #write(io: WireIo, frames: Buffer): number {
    return this.#isDead ? BROKEN : this.#see(this.#writer.write(io, frames));
  }

  #see(written: number): number {
    if (written < 0) this.#isDead = true;
    return written;
  }

  flush(io: WireIo): number {
    if (this.inner.pending) return this.inner.flush(io);
    const beats = this.#beats.map((stream) => codes.encodeFrame(codes.HEARTBEAT_RESPONSE, stream));
    this.#beats = [];
    return beats.length === 0 ? EINTR : this.#write(io, Buffer.concat(beats)) || EINTR;
  }

  /** Data of the stream, at the start of the thread's buffer. EINTR: there was something else. */
  read(io: WireIo, size: number): number {
    const bytes = this.#readInner(io, size);
    if (bytes <= 0) return bytes;
    return this.#takeApart(io.calls.buffer, bytes) || EINTR;
  }

  /** The end of the connection is none of a stream. */
  #readInner(io: WireIo, size: number): number {
    if (this.#isDead) return BROKEN;
    const bytes = this.inner.read(io, size);
    if (bytes > 0 || bytes === EAGAIN || bytes === EINTR) return bytes;
    this.#isDead = true;
    return bytes === 0 ? BROKEN : bytes;
  }

  available(io: WireIo): number {
    for (let frames = 0; frames < MOST_FRAMES; frames++) {
      const dataLeft = this.#stream === 0 ? 0 : this.#reader.dataLeftOf(this.#stream);
      if (dataLeft > 0) {
        const bytes = this.#isDead ? BROKEN : this.inner.available(io);
        return bytes === 0 ? BROKEN : Math.min(bytes, dataLeft);
      }
      const bytes = this.#readInner(io, Math.min(this.#reader.bytesLeft, BUFFER_BYTES));
      if (bytes < 0) return bytes;
      this.#takeApart(io.calls.buffer, bytes);
    }
    return EINTR;
  }

  /** Data of the stream moves to the start of the buffer: how much. */
  #takeApart(buffer: Uint8Array, bytes: number): number {
    this.#dataBytes = 0;
    this.#reader.read(buffer, bytes, this);
    return this.#dataBytes;
  }

  /** That of other streams means nothing. */
  onData(stream: number, buffer: Uint8Array, from: number, to: number): void {
    if (stream === 0 || stream !== this.#stream) return;
    if (from !== this.#dataBytes) buffer.copyWithin(this.#dataBytes, from, to);
    this.#dataBytes += to - from;
  }

  onFrame(command: number, stream: number, data: Buffer): void {
    const events = stream === this.#stream ? this.#events : null;
    if (command === codes.FIN) this.#onFin(events);
    else if (command === codes.SYNACK) events?.onAnswer(data.toString());
    else if (command === codes.HEARTBEAT_REQUEST) this.#onBeat(stream);
    else if (command === codes.SERVER_SETTINGS)
      this.#serverVersion = codes.versionIn(codes.decodeSettings(data));
    else if (command === codes.UPDATE_SCHEME) this.#settings.onScheme(data);
    else if (command === codes.ALERT && data.length > 0) this.#isDead = true;
  }

  #onFin(events: SessionEvents | null): void {
    if (events === null) return;
    this.#stream = 0;
    this.#events = null;
    events.onFarEnd();
  }

  #onBeat(stream: number): void {
    this.#beats.push(stream);
    if (this.#beats.length > MOST_BEATS) this.#isDead = true;
  }
}
