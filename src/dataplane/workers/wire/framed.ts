import { BUFFER_BYTES, EINTR, HEADROOM_BYTES } from "#platform/linux/relay-calls.ts";
import { BROKEN, RECORD_BYTES, type Ssl } from "#platform/linux/ssl.ts";
import type { WireRemainder } from "#core/handover.ts";
import type { PaddingDetails, ShapeItem, WriteShapes } from "#core/wire-details.ts";
import { shapeWrite } from "#protocols/shared/padded-write.ts";
import { encodeData, encodeFrame, HEADER_BYTES, PSH } from "#protocols/shared/stream-frame.ts";
import type { WireIo } from "./wire.ts";
import { HANDS_BACK } from "./wire.ts";
import { TlsWire } from "./tls.ts";

/** With its header a frame fills TLS records to the last byte. */
const FRAME_BYTES = 4 * RECORD_BYTES - HEADER_BYTES;

/** What one `read` opens at most: a peer decides how little is in each. */
const MOST_FRAMES = 64;

const NOTHING = new Uint8Array(0);
const NO_SHAPES: WriteShapes = { stop: 0, lines: new Map<number, readonly ShapeItem[]>() };

export interface FramedStart {
  /** 0: the object of the library. 1: the stream. 2: what is still to come of the data frame that is under way. */
  word(at: number): number;
  /** Bytes of the session that were read already and not understood. */
  readonly unread: Uint8Array | null;
  /** Absent: no write is padded. */
  readonly padding: PaddingDetails | undefined;
  /** The socket stays open, with what is left. */
  spare(remainder: WireRemainder): void;
}

/**
 * One stream of a session of frames in TLS, the only one that is open there; of either side. It understands data of that stream only:
 * on any other frame, and at the end of its own side, both sockets go back to the session's owner.
 */
export class FramedWire extends TlsWire {
  readonly #stream: number;
  /** How its frames begin. */
  readonly #prefix: Uint8Array;
  readonly #spare: (remainder: WireRemainder) => void;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  /** Of a data frame. */
  #dataLeft: number;
  #unread: Uint8Array;
  #undelivered: Uint8Array | null = null;
  readonly #shapes: WriteShapes;
  /** Of the session, as long as some are padded. */
  #writes: number;

  /** The object is its own from here on, with its output collected (`SslOutgoing`), until it comes to `spare`. */
  constructor(ssl: Ssl, fd: number, { word, unread, padding, spare }: FramedStart) {
    super(ssl, BigInt(word(0)), fd);
    this.#stream = word(1);
    this.#prefix = encodeFrame(PSH, this.#stream).subarray(0, HEADER_BYTES - 2);
    this.#dataLeft = word(2);
    this.#unread = unread ?? NOTHING;
    this.#shapes = padding?.shapes ?? NO_SHAPES;
    this.#writes = padding?.writes ?? 0;
    this.#spare = spare;
  }

  override read(io: WireIo, size: number): number {
    let total = 0;
    for (let frames = 0; total < size && frames < MOST_FRAMES; frames++) {
      let bytes = this.#openFrame(io);
      if (bytes > 0) bytes = this.#take(io, Math.min(size - total, this.#dataLeft), total);
      if (bytes <= 0) return total > 0 ? total : bytes; // said once, it is said again
      this.#dataLeft -= bytes;
      total += bytes;
    }
    return total;
  }

  override available(io: WireIo): number {
    const opened = this.#openFrame(io);
    if (opened <= 0) return opened;
    const bytes = this.#unread.length > 0 ? this.#unread.length : super.available(io);
    return bytes === 0 ? BROKEN : Math.min(bytes, this.#dataLeft);
  }

  /** 1: data comes next, of this stream. */
  #openFrame(io: WireIo): number {
    if (this.#dataLeft > 0) return 1;
    const missing = HEADER_BYTES - this.#headerBytes;
    if (missing > 0) {
      const bytes = this.#take(io, missing, -HEADER_BYTES);
      if (bytes <= 0) return bytes;
      const { roomy } = io.calls;
      const start = HEADROOM_BYTES - HEADER_BYTES;
      this.#header.set(roomy.subarray(start, start + bytes), this.#headerBytes);
      this.#headerBytes += bytes;
      if (bytes < missing) return EINTR;
    }
    if (this.#header[0] !== PSH || this.#header.readUInt32BE(1) !== this.#stream) return HANDS_BACK;
    this.#headerBytes = 0;
    this.#dataLeft = this.#header.readUInt16BE(5);
    return this.#dataLeft > 0 ? 1 : EINTR;
  }

  /** Bytes of the session, as far behind the start of the buffer. */
  #take(io: WireIo, size: number, at: number): number {
    if (this.#unread.length === 0) {
      const bytes = this.readAt(io, size, at);
      return bytes === 0 ? BROKEN : bytes; // the session ended within the stream
    }
    const piece = this.#unread.subarray(0, size);
    io.calls.roomy.set(piece, HEADROOM_BYTES + at);
    this.#unread = this.#unread.subarray(piece.length);
    return piece.length;
  }

  /** All of it. */
  override write(io: WireIo, size: number): number {
    if (this.#writes >= this.#shapes.stop) return this.#writeFrames(io, size);
    return this.#shapes.lines.has(this.#writes++) ? this.#writePieces(io, size) : this.#writeFrames(io, size);
  }

  /** Each piece is a record of its own, and goes to the socket alone. */
  #writePieces(io: WireIo, size: number): number {
    const { buffer } = io.calls;
    const frames = encodeData(this.#stream, Buffer.from(buffer.buffer, buffer.byteOffset, size));
    for (const piece of shapeWrite(this.#shapes, this.#writes - 1, frames))
      for (let from = 0; from < piece.length; from += BUFFER_BYTES) {
        const part = piece.subarray(from, from + BUFFER_BYTES);
        buffer.set(part);
        const sent = this.#sealAll(io, part.length, 0) ? this.send(io) : this.fail(BROKEN);
        if (sent < 0) return sent;
      }
    return size;
  }

  /** A header replaces bytes that are sealed already, the first one precedes the buffer. */
  #writeFrames(io: WireIo, size: number): number {
    const { roomy } = io.calls;
    for (let from = 0; from < size; from += FRAME_BYTES) {
      const bytes = Math.min(FRAME_BYTES, size - from);
      const at = HEADROOM_BYTES + from - HEADER_BYTES;
      roomy.set(this.#prefix, at);
      roomy[at + 5] = bytes >>> 8;
      roomy[at + 6] = bytes;
      if (!this.#sealAll(io, HEADER_BYTES + bytes, from - HEADER_BYTES)) return this.fail(BROKEN);
    }
    const sent = this.send(io);
    return sent < 0 ? sent : size;
  }

  #sealAll(io: WireIo, size: number, from: number): boolean {
    const isSealed = this.seal(size, from) === size;
    if (!isSealed) this.send(io); // the ciphertext is in the buffer that all connections of the worker use
    return isSealed;
  }

  /** The end of a stream is a frame like others. */
  override endWriting(): number {
    return HANDS_BACK;
  }

  /** Bytes that were read here and found no room on the other side, for a connection that goes back. */
  unread(bytes: Uint8Array): void {
    this.#undelivered = bytes;
  }

  override drop(io: WireIo): void {
    const unsent = this.release(io);
    this.#spare({
      failed: this.failed,
      unsent,
      undelivered: this.#undelivered,
      dataLeft: this.#dataLeft,
      unread: Buffer.concat([this.#header.subarray(0, this.#headerBytes), this.#unread]),
      writes: this.#writes,
    });
  }
}
