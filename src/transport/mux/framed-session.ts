import type { Duplex } from "node:stream";
import { DialError, messageOf, ProtocolError, asError } from "#core/errors.ts";
import { endWithReply } from "#net/listen/accept.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { onEnd } from "#net/stream/late-end.ts";
import {
  CLIENT_IDLE_MS,
  LAST_ID,
  MAX_STREAMS,
  type MuxEvents,
  type OpenMuxSession,
  ROOM_BYTES,
  SERVER_IDLE_MS,
  TICK_MS,
} from "./session.ts";
import { Silence } from "./silence.ts";
import type { Done, MuxStream, StreamOwner } from "./stream.ts";

/** What the connection has not passed on. Answers to a peer that asks without reading end it there. */
const MAX_QUEUED_BYTES = 8 << 20;
/** Frames that are shorter wait for the end of the turn and go out in one write. */
const LARGE_BYTES = 1024;

export interface Framing {
  readonly headBytes: number;
  /** Of a client's streams, which have odd numbers. */
  readonly firstId: number;
  /** Of all streams, waiting for readers; beyond, nothing is read. */
  readonly mostHeldBytes: number;
}

/**
 * What smux and yamux have in common: a header of fixed size, then perhaps a body for one stream. Bodies are handed on as
 * they come, so a frame's length needs no memory.
 */
export abstract class FramedSession<Stream extends MuxStream> implements OpenMuxSession, StreamOwner {
  protected readonly table = new Map<number, Stream>();
  protected readonly isClient: boolean;
  readonly #wire: Duplex;
  readonly #headBytes: number;
  readonly #mostHeldBytes: number;
  readonly #events: MuxEvents;
  readonly #arrived = new ByteQueue();
  /** Writers that wait for the connection; at most one a stream. */
  readonly #blocked: Done[] = [];
  readonly #timer: NodeJS.Timeout;
  /** Frames that go out with the next ones, or at the end of the turn. */
  #gathered: Buffer[] = [];
  #flushing: NodeJS.Immediate | null = null;
  #nextId: number;
  #body: { readonly stream: Stream | null; left: number; readonly endsStream: boolean } | null = null;
  #heldBytes = 0;
  #idleSinceMs = performance.now();
  readonly #silence = new Silence();
  #retiring = false;
  #closed = false;

  constructor(wire: Duplex, { headBytes, firstId, mostHeldBytes }: Framing, events: MuxEvents) {
    this.#wire = wire;
    this.#headBytes = headBytes;
    this.#mostHeldBytes = mostHeldBytes;
    this.#nextId = firstId;
    this.#events = events;
    this.isClient = events.onStream === null;
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    wire.on("data", (bytes: Buffer) => this.#arrive(bytes));
    onEnd(wire, () => this.close(null));
    wire.on("error", (error) => this.close(error));
    wire.on("close", () => this.close(null));
    wire.on("drain", () => this.#release());
    wire.resume(); // a handshake before may have paused it
  }

  get streams(): number {
    return this.table.size;
  }

  get usable(): boolean {
    return !this.#retiring && !this.#closed && this.#nextId < LAST_ID && !this.#silence.isLong;
  }

  abstract open(): Duplex;
  abstract sendData(stream: Stream, data: Buffer, done: Done): void;
  abstract sendEnd(stream: Stream, done: Done): void;
  abstract taken(stream: Stream, bytes: number): void;
  /** Called when a stream has left the table: send the peer the frames (end, reset) that it has not had yet. */
  protected abstract left(stream: Stream, whole: boolean): void;
  /** A header. Throws `ProtocolError`. */
  protected abstract onHead(head: Buffer): void;
  /** Sends a keep-alive frame, for the peer and for routers between. Throws when the peer has stopped answering. */
  protected abstract keepAlive(): void;
  /** Empty where the protocol has none. */
  protected abstract finalBytes(error: Error | null): Buffer;

  /** `length` bytes follow the header: payload of the stream, or to be skipped when it is null. */
  protected expectBody(stream: Stream | null, length: number, endsStream = false): void {
    if (length > 0) this.#body = { stream, left: length, endsStream };
    else if (endsStream) stream?.farEnd();
  }

  /** Of a stream that is opened here. Throws `DialError` where the session takes no more. */
  protected takeId(): number {
    if (!this.usable) throw new DialError("failed", "the mux session takes no more streams");
    const id = this.#nextId;
    this.#nextId += 2;
    this.#silence.asked();
    return id;
  }

  /** Puts a stream into the table. */
  protected enter(stream: Stream): Stream {
    this.table.set(stream.id, stream);
    return stream;
  }

  /** Accepts a stream that the peer has opened. False: there are too many, and the caller sends the refusal. */
  protected acceptStream(stream: Stream): boolean {
    if (this.table.size >= MAX_STREAMS) return false;
    this.enter(stream);
    this.#events.onStream?.(stream);
    return true;
  }

  /** Frames go out in order, small ones of all streams together at the end of the turn; `done` when the connection takes more. */
  protected send(frames: Buffer, done: Done | null = null): void {
    if (this.#closed) return; // its streams are gone
    const wire = this.#wire;
    if (frames.length >= LARGE_BYTES) {
      this.#flush();
      wire.write(frames);
    } else {
      this.sendLater(frames);
      this.#flushing ??= setImmediate(() => this.#flush());
    }
    if (done !== null && !wire.writableNeedDrain) done();
    else if (done !== null) this.#blocked.push(done);
    else if (wire.writableNeedDrain && wire.writableLength > MAX_QUEUED_BYTES)
      this.close(new ProtocolError("the mux peer asks without reading"));
  }

  /** Data of a stream, which waits for the connection where it is not little; `done` when that takes more. */
  protected sendFrames(stream: Stream, frames: Buffer, done: Done): void {
    if (frames.length < LARGE_BYTES || !this.#wire.writableNeedDrain) this.send(frames, done);
    else
      this.#blocked.push(() => {
        if (!stream.destroyed) this.sendFrames(stream, frames, done);
      });
  }

  /** A frame that need not go out before the next one does. */
  protected sendLater(frame: Buffer): void {
    this.#gathered.push(frame);
  }

  #flush(): void {
    if (this.#flushing !== null) clearImmediate(this.#flushing);
    this.#flushing = null;
    const frames = this.#gathered;
    if (frames.length === 0) return;
    this.#gathered = [];
    if (!this.#wire.destroyed) this.#wire.write(Buffer.concat(frames));
  }

  holds(bytes: number): void {
    this.#heldBytes += bytes;
    const roomBytes = this.#mostHeldBytes - this.#heldBytes;
    if (roomBytes < 0) this.#wire.pause();
    else if (bytes < 0 && roomBytes >= ROOM_BYTES && this.#wire.isPaused()) this.#wire.resume();
  }

  gone(stream: Stream, whole: boolean): void {
    if (this.table.get(stream.id) !== stream) return;
    this.table.delete(stream.id);
    if (this.#body?.stream === stream) this.#body = { ...this.#body, stream: null };
    if (!this.#closed) this.left(stream, whole);
    if (this.table.size > 0) return;
    this.#silence.unused();
    this.#idleSinceMs = performance.now();
    if (this.#retiring) this.close(null);
  }

  retire(): void {
    this.#retiring = true;
    if (this.table.size === 0) this.close(null);
  }

  close(error: Error | null): void {
    if (this.#closed) return;
    if (error !== null) this.#events.log.debug(() => `mux session: ${messageOf(error)}`);
    this.#closed = true;
    clearInterval(this.#timer);
    this.#flush();
    endWithReply(this.#wire, this.finalBytes(error));
    for (const stream of this.table.values()) stream.destroy(error ?? new Error("the mux session has ended"));
    this.#blocked.length = 0; // their streams are gone
    this.#events.onClosed();
  }

  #release(): void {
    while (this.#blocked.length > 0 && !this.#wire.writableNeedDrain) this.#blocked.shift()?.();
  }

  #arrive(bytes: Buffer): void {
    if (this.#closed) return;
    this.#silence.heard();
    this.#arrived.push(bytes);
    try {
      while (!this.#closed && this.#takeNext());
    } catch (error) {
      this.close(asError(error));
    }
  }

  #takeNext(): boolean {
    const body = this.#body;
    if (body === null) {
      const head = this.#arrived.take(this.#headBytes);
      if (head !== null) this.onHead(head);
      return head !== null;
    }
    const data = this.#arrived.takeSome(body.left);
    if (data.length === 0) return false;
    body.left -= data.length;
    if (body.left === 0) this.#body = null;
    body.stream?.arrive(data);
    if (body.left === 0 && body.endsStream) body.stream?.farEnd();
    return true;
  }

  #tick(): void {
    const idleMs = this.isClient ? CLIENT_IDLE_MS : SERVER_IDLE_MS;
    if (this.table.size === 0 && performance.now() - this.#idleSinceMs > idleMs) return this.retire();
    try {
      this.keepAlive();
    } catch (error) {
      this.close(asError(error));
    }
  }
}
