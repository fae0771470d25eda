import type { PaddingDetails, ShapeItem, WriteShapes } from "#core/wire-details.ts";
import { BUFFER_BYTES } from "#platform/linux/relay-calls.ts";
import { BROKEN, RECORD_BYTES } from "#platform/linux/ssl.ts";
import { shapeWrite } from "#protocols/shared/padded-write.ts";
import { encodeData, HEADER_BYTES, PSH, writeHeader } from "#protocols/shared/stream-frame.ts";
import type { Wire, WireIo } from "./wire.ts";

/** With its header a frame fills TLS records to the last byte. */
const FRAME_BYTES = 4 * RECORD_BYTES - HEADER_BYTES;

const NO_SHAPES: WriteShapes = { stop: 0, lines: new Map<number, readonly ShapeItem[]>() };
const NO_HEAD = new Uint8Array(0);

/** The writes of a session of frames, of which the first ones may be padded. Errnos are those of the wire below. */
export class FrameWriter {
  readonly #inner: Wire;
  readonly #shapes: WriteShapes;
  #writes: number;

  constructor(inner: Wire, { shapes, writes }: PaddingDetails = { shapes: NO_SHAPES, writes: 0 }) {
    this.#inner = inner;
    this.#shapes = shapes;
    this.#writes = writes;
  }

  /** Of the session, as long as some are padded. */
  get writes(): number {
    return this.#writes;
  }

  get isPadding(): boolean {
    return this.#writes < this.#shapes.stop;
  }

  /** What lies at the start of the thread's buffer, as data of the stream; all of it. `head`: frames that go out in front. 0, or an errno. */
  writeData(io: WireIo, stream: number, size: number, head: Uint8Array = NO_HEAD): number {
    if (!this.#isShaped) {
      this.#count();
      return this.#writeFrames(io, stream, size, head);
    }
    const { buffer } = io.calls;
    const data = encodeData(stream, Buffer.from(buffer.buffer, buffer.byteOffset, size));
    return this.write(io, head.length === 0 ? data : Buffer.concat([head, data]));
  }

  /** One write of whole frames. 0, or an errno. */
  write(io: WireIo, frames: Buffer): number {
    return this.#writePieces(io, this.#isShaped ? shapeWrite(this.#shapes, this.#writes, frames) : [frames]);
  }

  /** One write as it is, whatever the scheme has for it. 0, or an errno. */
  writeAsIs(io: WireIo, bytes: Buffer): number {
    return this.#writePieces(io, [bytes]);
  }

  #writePieces(io: WireIo, pieces: readonly Buffer[]): number {
    this.#count();
    for (const piece of pieces) {
      const written = this.#writePiece(io, piece);
      if (written < 0) return written;
    }
    return 0;
  }

  get #isShaped(): boolean {
    return this.isPadding && this.#shapes.lines.has(this.#writes);
  }

  #count(): void {
    if (this.isPadding) this.#writes++;
  }

  /** A record of its own, which goes to the socket alone. */
  #writePiece(io: WireIo, piece: Buffer): number {
    for (let from = 0; from < piece.length; from += BUFFER_BYTES) {
      const part = piece.subarray(from, from + BUFFER_BYTES);
      io.calls.buffer.set(part);
      const written = this.#pass(io, part.length);
      if (written < 0) return written;
    }
    return 0;
  }

  /** The last frame moves up first. */
  #writeFrames(io: WireIo, stream: number, size: number, head: Uint8Array): number {
    const { buffer } = io.calls;
    const count = Math.ceil(size / FRAME_BYTES);
    for (let index = count - 1; index >= 0; index--) {
      const from = index * FRAME_BYTES;
      const to = Math.min(from + FRAME_BYTES, size);
      const at = head.length + from + index * HEADER_BYTES;
      buffer.copyWithin(at + HEADER_BYTES, from, to);
      writeHeader(buffer, at, PSH, stream, to - from);
    }
    buffer.set(head);
    return this.#pass(io, head.length + size + count * HEADER_BYTES);
  }

  #pass(io: WireIo, size: number): number {
    const written = this.#inner.write(io, size);
    return written === size ? 0 : Math.min(written, BROKEN);
  }
}
