import { byteAt } from "#lib/at.ts";
import { HEADER_BYTES, PSH, WASTE } from "#protocols/shared/stream-frame.ts";

/** What becomes of the frames of a session. */
export interface FrameReceiver {
  /** True: nothing that follows is wanted. */
  readonly isDead: boolean;
  /** Some bytes of a data frame: those of the buffer from `from` to `to`, lent. */
  onData(stream: number, buffer: Uint8Array, from: number, to: number): void;
  /** Any other frame, whole. */
  onFrame(command: number, stream: number, data: Buffer): void;
}

/** Takes the frames of a session apart, wherever they are cut. Padding means nothing. */
export class FrameReader {
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  /** Of the frame that is under way, still to come. */
  #left = 0;
  #stream = 0;
  #isData = false;
  /** What has come of a frame that is understood as a whole; null: its data is passed on, or means nothing. */
  #control: Buffer[] | null = null;

  /** To the end of the header or of the frame that is under way. */
  get bytesLeft(): number {
    return this.#left > 0 ? this.#left : HEADER_BYTES - this.#headerBytes;
  }

  /** The same, where the frame under way has data of that stream; else 0. */
  dataLeftOf(stream: number): number {
    return this.#isData && this.#stream === stream ? this.#left : 0;
  }

  /** So many bytes from the buffer's start. */
  read(buffer: Uint8Array, bytes: number, on: FrameReceiver): void {
    for (let at = 0; at < bytes && !on.isDead;) {
      if (this.#left === 0) {
        this.#header[this.#headerBytes++] = byteAt(buffer, at++);
        if (this.#headerBytes === HEADER_BYTES) this.#begin(on);
        continue;
      }
      const to = at + Math.min(this.#left, bytes - at);
      this.#left -= to - at;
      if (this.#isData) on.onData(this.#stream, buffer, at, to);
      else this.#control?.push(Buffer.from(buffer.subarray(at, to)));
      at = to;
      if (this.#left === 0) this.#end(on);
    }
  }

  #begin(on: FrameReceiver): void {
    const command = byteAt(this.#header, 0);
    this.#headerBytes = 0;
    this.#stream = this.#header.readUInt32BE(1);
    this.#left = this.#header.readUInt16BE(5);
    this.#isData = command === PSH;
    this.#control = command === PSH || command === WASTE ? null : [];
    if (this.#left === 0) this.#end(on);
  }

  #end(on: FrameReceiver): void {
    const control = this.#control;
    this.#control = null;
    if (control !== null) on.onFrame(byteAt(this.#header, 0), this.#stream, Buffer.concat(control));
  }
}
