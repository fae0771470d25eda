import type { Duplex } from "node:stream";
import { ProtocolError, asError } from "#core/errors.ts";
import { type Detachable, detachable } from "#core/handover.ts";
import type { DetachedState, FramedLayer, WireRemainder } from "#core/wire-state.ts";
import type { PaddingDetails } from "#core/wire-details.ts";
import { PassingMap } from "#lib/passing-map.ts";
import { abortStream } from "#core/stream.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { onEnd } from "#net/stream/late-end.ts";
import { type Done, FULL_WRITE_BYTES, SessionOutput } from "./session-output.ts";
import type { SessionStream, StreamOwner } from "./stream.ts";
import {
  encodeData,
  encodeFrame,
  FIN,
  type Frame,
  HEADER_BYTES,
  HEARTBEAT_REQUEST,
  HEARTBEAT_RESPONSE,
  PSH,
  takeFrame,
  WASTE,
} from "./wire.ts";

const CLOSE_TIMEOUT_MS = 5_000;
/**
 * Streams in one connection, which it owns. There is no flow control per stream: one that is not read holds up all, as
 * the protocol has it. Ends once, with an error or without; its streams end with it.
 */
export abstract class Session implements StreamOwner {
  protected readonly streams = new PassingMap<number, SessionStream>();
  readonly #wire: Duplex;
  readonly #output: SessionOutput;
  readonly #arrived = new ByteQueue();
  /** Streams whose readers are slow; the wire is paused while there is one. */
  readonly #blocked = new Set<SessionStream>();
  #closed = false;
  /** The buffer of large frames that are written, for the next ones; none while there are no streams. */
  #memory: Buffer | null = null;
  /** What is left of a data frame that is passed on in parts, and the stream that gets it; null: the data is discarded. */
  #dataLeft = 0;
  #dataFor: SessionStream | null = null;

  constructor(wire: Duplex) {
    this.#wire = wire;
    const onFlood = (): void =>
      this.close(new ProtocolError("the peer asks for answers and does not read them"));
    this.#output = new SessionOutput(wire, onFlood);
    wire.on("data", (bytes: Buffer) => this.#receive(bytes));
    onEnd(wire, () => this.close(null));
    wire.on("error", (error) => this.close(error));
    wire.on("close", () => this.close(null));
    wire.resume(); // a handshake before may have paused it
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** A relay worker has the wire, for the only stream; what is sent waits until it is back. */
  protected get isAway(): boolean {
    return this.#output.isHeld;
  }

  /** Everything but data, waste and heartbeats. Throws `ProtocolError`. */
  protected abstract onFrame(frame: Frame): void;
  /** Runs once. Ends the streams that are left. */
  protected abstract onClosed(error: Error | null): void;
  /** A worker could make the writes that follow. */
  protected abstract get mayLeave(): boolean;
  /** What it has to know of these; undefined: nothing. */
  protected abstract get padding(): PaddingDetails | undefined;
  /** The wire is back, with what this many writes of the session have left; nothing has been read from it yet. */
  protected abstract onBack(writes: number): void;

  close(error: Error | null): void {
    if (this.#closed) return;
    this.#closed = true;
    if (error === null) this.#closeWire();
    else abortStream(this.#wire, error);
    this.onClosed(error);
    this.#output.release();
  }

  /** In an orderly way, unless the peer does not take what is left. */
  #closeWire(): void {
    this.#output.flush();
    const timer = setTimeout(() => this.#wire.destroy(), CLOSE_TIMEOUT_MS).unref();
    this.#wire.end(() => {
      clearTimeout(timer);
      this.#wire.destroy();
    });
  }

  /** As `SessionOutput.send`. */
  send(bytes: Buffer, done?: Done, through?: Done): void {
    if (this.#closed) return done?.();
    this.#output.send(bytes, done, through);
  }

  /** Sends bytes as one write of the wire, alone; `flushed` runs when they are out. */
  protected sendAlone(bytes: Buffer, flushed: Done): void {
    this.#wire.write(bytes, () => flushed());
  }

  sendData(stream: SessionStream, data: Buffer, done: Done): void {
    if (data.length < FULL_WRITE_BYTES) return this.send(encodeData(stream.id, data), done);
    const memory = this.#memory;
    this.#memory = null;
    const frames = encodeData(stream.id, data, memory);
    const whole = memory !== null && memory.length >= frames.length ? memory : frames;
    this.send(frames, done, () => this.#reclaim(whole));
  }

  #reclaim(memory: Buffer): void {
    if (this.streams.size > 0) this.#memory = memory;
  }

  /** Says that a stream is over for both sides and forgets it. */
  finish(stream: SessionStream): void {
    if (this.streams.get(stream.id) !== stream) return;
    this.send(encodeFrame(FIN, stream.id));
    this.forget(stream);
  }

  protected forget(stream: SessionStream): void {
    this.streams.delete(stream.id);
    if (this.streams.size === 0) this.#memory = null;
    if (this.#dataFor === stream) this.#dataFor = null;
    this.readable(stream);
  }

  /** The stream's reader has room again. */
  readable(stream: SessionStream): void {
    if (this.#blocked.delete(stream) && this.#blocked.size === 0) this.#wire.resume();
  }

  #receive(bytes: Buffer): void {
    if (this.#closed) return;
    try {
      if (this.#arrived.length === 0 && bytes.length <= this.#dataLeft) return this.#deliver(bytes);
      this.#arrived.push(bytes);
      while (!this.#closed && this.#step());
    } catch (error) {
      this.close(asError(error));
    }
  }

  /** One frame, or what has come of a data frame; false: more bytes are needed. */
  #step(): boolean {
    if (this.#dataLeft > 0) return this.#passOn();
    const header = this.#arrived.peek(HEADER_BYTES);
    if (header === null) return false;
    const command = header[0];
    if (command === PSH || command === WASTE) {
      this.#dataLeft = header.readUInt16BE(5);
      this.#dataFor = command === PSH ? (this.streams.get(header.readUInt32BE(1)) ?? null) : null;
      this.#arrived.skip(HEADER_BYTES);
      return true;
    }
    const frame = takeFrame(this.#arrived);
    if (frame === null) return false;
    if (command === HEARTBEAT_REQUEST) this.send(encodeFrame(HEARTBEAT_RESPONSE, frame.streamId));
    else this.onFrame(frame);
    return true;
  }

  #passOn(): boolean {
    const piece = this.#arrived.takeSome(this.#dataLeft);
    this.#deliver(piece);
    return piece.length > 0;
  }

  #deliver(piece: Buffer): void {
    this.#dataLeft -= piece.length;
    const stream = this.#dataFor;
    if (piece.length === 0 || stream === null || stream.arrive(piece) || this.isAway) return;
    this.#block(stream);
  }

  #block(stream: SessionStream): void {
    this.#blocked.add(stream);
    this.#wire.pause();
  }

  /**
   * How a relay worker may take over the wire of the only stream; it gives the wire back as soon as anything but data
   * comes. Null: not now, and perhaps never.
   */
  detachableFor(stream: SessionStream): Detachable | null {
    const isAlone = this.streams.size === 1 && this.streams.get(stream.id) === stream;
    const isBusy = this.#closed || this.isAway || !this.mayLeave;
    if (!isAlone || isBusy || (this.#dataLeft > 0 && this.#dataFor !== stream)) return null;
    this.#output.flush();
    if (!this.#output.isIdle || this.#blocked.size > 0) return null;
    const wire = detachable(this.#wire);
    if (wire === null || wire.isLayered === true || wire.reattach === undefined) return null;
    if (wire.kind !== "tls" && wire.kind !== "records") return null;
    return {
      ...wire,
      isLayered: true,
      isSession: true,
      detach: () => this.#leave(stream, wire),
      reattach: (fd, remainder) => this.#takeBack(stream, remainder, () => wire.reattach?.(fd, remainder)),
    };
  }

  #leave(stream: SessionStream, wire: Detachable): DetachedState {
    this.#output.isHeld = true;
    const state = wire.detach();
    const unread = this.#arrived.length === 0 ? null : this.#arrived.takeAll();
    const { padding } = this;
    const layer: FramedLayer = {
      kind: "framed",
      stream: stream.id,
      dataLeft: this.#dataLeft,
      unread,
      ...(padding === undefined ? {} : { padding }),
    };
    this.#dataLeft = 0;
    return { ...state, layers: [layer] };
  }

  #takeBack(stream: SessionStream, remainder: WireRemainder | null, takeWire: () => void): void {
    this.#output.isHeld = false;
    takeWire();
    if (remainder === null) return this.close(new Error("the thread that had the session is gone"));
    if (this.#closed) return;
    this.onBack(remainder.writes);
    this.#dataLeft = remainder.dataLeft;
    this.#dataFor = this.streams.get(stream.id) === stream ? stream : null;
    const { undelivered } = remainder;
    if (undelivered !== null && this.#dataFor !== null && !stream.arrive(Buffer.from(undelivered)))
      this.#block(stream);
    this.#output.flush();
    this.#receive(Buffer.from(remainder.unread));
  }
}
