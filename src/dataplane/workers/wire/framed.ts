import type { FramedLayer, RecordState, WireRemainder } from "#core/wire-state.ts";
import { byteAt } from "#lib/at.ts";
import { EINTR } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import { HEADER_BYTES, PSH } from "#protocols/shared/stream-frame.ts";
import { FrameWriter } from "./frame-writer.ts";
import { HANDS_BACK, type Wire, type WireIo } from "./wire.ts";
import { WireLayer } from "./wire-layer.ts";

/** What one look at what is there passes over at most: a peer decides how little is in each frame. */
const MOST_FRAMES = 64;

const NOTHING = new Uint8Array(0);

/** A wire whose socket goes on with another owner. */
export interface ReturningWire extends Wire {
  /** In place of `drop`: what that owner goes on with. */
  release(io: WireIo): ReleasedWire;
}

export interface ReleasedWire extends Pick<WireRemainder, "failed" | "unsent"> {
  /** Payload that was opened, and not read; null: none. */
  readonly opened: Uint8Array | null;
  /** Null: it is the library's. */
  readonly records: RecordState | null;
}

/**
 * One stream of a session of frames over TLS, the only one that is open there; of either side. It understands data of that
 * stream only: on any other frame, and at the end of its own side, both sockets go back to the session's owner.
 */
export class FramedWire extends WireLayer implements Wire {
  readonly bareSource = -1;
  readonly bareTarget = -1;
  protected override readonly inner: ReturningWire;
  readonly #stream: number;
  readonly #spare: (remainder: WireRemainder) => void;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  /** Of a data frame. */
  #dataLeft: number;
  /** Read before, or behind what is not understood. */
  #unread: Uint8Array;
  #undelivered: Uint8Array | null = null;
  readonly #writer: FrameWriter;
  /** The result of all further reads; null: reading goes on. */
  #last: number | null = null;
  #hasFailed = false;

  /** `spare`: the socket stays open, with what is left. */
  constructor(inner: ReturningWire, layer: FramedLayer, spare: (remainder: WireRemainder) => void) {
    super(inner);
    this.inner = inner;
    this.#stream = layer.stream;
    this.#dataLeft = layer.dataLeft;
    this.#unread = layer.unread ?? NOTHING;
    this.#writer = new FrameWriter(inner, layer.padding);
    this.#spare = spare;
  }

  override get readable(): boolean {
    return this.#last !== null || this.#unread.length > 0 || this.inner.readable;
  }

  override set readable(readable: boolean) {
    this.inner.readable = readable;
  }

  read(io: WireIo, size: number): number {
    if (this.#last !== null) return this.#last;
    const bytes = this.#readSession(io, size);
    if (bytes <= 0) return bytes;
    const plainBytes = this.#unframe(io.calls.buffer, bytes);
    return plainBytes > 0 ? plainBytes : (this.#last ?? EINTR);
  }

  /** Bytes of the session to the start of the thread's buffer. It ends within the stream: that is a fault. */
  #readSession(io: WireIo, size: number): number {
    const unread = this.#unread;
    if (unread.length === 0) {
      const bytes = this.inner.read(io, size);
      return bytes === 0 ? (this.#last = BROKEN) : bytes;
    }
    const bytes = Math.min(size, unread.length);
    io.calls.buffer.set(unread.subarray(0, bytes));
    this.#unread = unread.subarray(bytes);
    return bytes;
  }

  /** Payload moves to the start of the buffer; behind what is not understood all is kept as it came. */
  #unframe(buffer: Uint8Array, bytes: number): number {
    let plainBytes = 0;
    for (let at = 0; at < bytes;) {
      const size = Math.min(this.#dataLeft, bytes - at);
      if (size > 0) {
        if (at !== plainBytes) buffer.copyWithin(plainBytes, at, at + size);
        plainBytes += size;
        this.#dataLeft -= size;
        at += size;
      } else {
        this.#header[this.#headerBytes++] = byteAt(buffer, at++);
        if (this.#headerBytes === HEADER_BYTES && !this.#openFrame()) {
          this.#keep(buffer.subarray(at, bytes));
          return plainBytes;
        }
      }
    }
    return plainBytes;
  }

  /** False: it is no data of this stream. */
  #openFrame(): boolean {
    if (this.#header[0] !== PSH || this.#header.readUInt32BE(1) !== this.#stream) return false;
    this.#headerBytes = 0;
    this.#dataLeft = this.#header.readUInt16BE(5);
    return true;
  }

  #keep(behind: Uint8Array): void {
    this.#unread = Buffer.concat([this.#header, behind, this.#unread]);
    this.#headerBytes = 0;
    this.#last = HANDS_BACK;
  }

  available(io: WireIo): number {
    for (let frames = 0; this.#last === null && frames < MOST_FRAMES; frames++) {
      const isOpen = this.#dataLeft > 0;
      const bytes = isOpen
        ? this.#availableInSession(io)
        : this.#readSession(io, HEADER_BYTES - this.#headerBytes);
      if (bytes < 0) return bytes;
      if (isOpen) return bytes === 0 ? (this.#last = BROKEN) : Math.min(bytes, this.#dataLeft);
      this.#unframe(io.calls.buffer, bytes);
    }
    return this.#last ?? EINTR;
  }

  #availableInSession(io: WireIo): number {
    return this.#unread.length > 0 ? this.#unread.length : this.inner.available(io);
  }

  /** All of it. */
  write(io: WireIo, size: number): number {
    const written = this.#writer.writeData(io, this.#stream, size);
    if (written < 0) this.#hasFailed = true;
    return written < 0 ? written : size;
  }

  /** The end of a stream is a frame like others. */
  endWriting(): number {
    return HANDS_BACK;
  }

  /** Bytes that were read here and found no room on the other side, for a connection that goes back. */
  unread(bytes: Uint8Array): void {
    this.#undelivered = bytes;
  }

  override drop(io: WireIo): void {
    const { failed, unsent, opened, records } = this.inner.release(io);
    const header = this.#header.subarray(0, this.#headerBytes);
    this.#spare({
      failed: this.#hasFailed || failed,
      unsent,
      undelivered: this.#undelivered,
      dataLeft: this.#dataLeft,
      unread: Buffer.concat([header, this.#unread, opened ?? NOTHING]),
      writes: this.#writer.writes,
      records,
    });
  }
}
