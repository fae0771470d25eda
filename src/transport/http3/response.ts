/** The answer to a request over HTTP/3 (RFC 9114 §4.1). */
import type { Readable } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { decodeFields, type Field } from "./qpack.ts";
import { DATA_FRAME, HEADERS_FRAME, MOST_FRAME_BYTES, peekFrame } from "./request.ts";

/** Takes an answer apart as it comes. */
export class ResponseReader {
  /** Null: it has not come. */
  status: number | null = null;
  readonly #onBody: (piece: Buffer) => void;
  readonly #arrived = new ByteQueue();
  /** Left of a DATA frame, and of a frame that is passed over. */
  #dataLeft = 0;
  #skipLeft = 0;

  /** `onBody` is given pieces of the body; `status` is known then. What it throws comes out of `push`. */
  constructor(onBody: (piece: Buffer) => void) {
    this.#onBody = onBody;
  }

  /** Throws `ProtocolError`. */
  push(chunk: Buffer): void {
    this.#arrived.push(chunk);
    while (this.#takePiece() || this.#takeFrame());
  }

  /** Of the frame that has begun. False: nothing is left of it, or nothing has come. */
  #takePiece(): boolean {
    const piece = this.#arrived.takeUpTo(this.#dataLeft + this.#skipLeft);
    if (piece.length === 0) return false;
    if (this.#skipLeft > 0) this.#skipLeft -= piece.length;
    else {
      this.#dataLeft -= piece.length;
      this.#onBody(piece);
    }
    return true;
  }

  /** False: not enough has come. */
  #takeFrame(): boolean {
    const frame = this.#dataLeft + this.#skipLeft > 0 ? null : peekFrame(this.#arrived);
    if (frame === null) return false;
    const { type, headBytes, bytes } = frame;
    if (type === HEADERS_FRAME) {
      if (bytes > MOST_FRAME_BYTES) throw new ProtocolError("HTTP/3: a frame is too long");
      const whole = this.#arrived.take(headBytes + bytes);
      if (whole === null) return false;
      this.#takeFields(decodeFields(whole.subarray(headBytes)));
      return true;
    }
    if (type === DATA_FRAME && this.status === null)
      throw new ProtocolError("HTTP/3: a body before the answer");
    this.#arrived.skip(headBytes);
    if (type === DATA_FRAME) this.#dataLeft = bytes;
    else this.#skipLeft = bytes;
    return true;
  }

  /** The first section that is not interim is the answer's (RFC 9110 §15.2); one behind the body is the trailer's. */
  #takeFields(fields: readonly Field[]): void {
    if (this.status !== null) return;
    const status = Number(fields.find(([name]) => name === ":status")?.[1]);
    if (!(status >= 100 && status <= 999)) throw new ProtocolError("HTTP/3: an answer without a status");
    if (status >= 200) this.status = status;
  }

  /** The stream has ended. Answers the status. Throws `ProtocolError` where that is too early. */
  end(): number {
    const isCut = this.#dataLeft + this.#skipLeft + this.#arrived.length > 0;
    if (this.status === null || isCut) throw new ProtocolError("HTTP/3: the answer is cut short");
    return this.status;
  }
}

/**
 * A whole answer. The stream stays the caller's to destroy. Rejects with `ProtocolError` where the answer cannot be read or
 * its body has more than `mostBytes`, and with what ends the stream otherwise.
 */
export async function readResponse(
  stream: Readable,
  mostBytes: number,
): Promise<{ readonly status: number; readonly body: Buffer }> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const reader = new ResponseReader((piece) => {
    bytes += piece.length;
    if (bytes > mostBytes) throw new ProtocolError(`HTTP/3: a body of more than ${mostBytes} bytes`);
    pieces.push(Buffer.from(piece));
  });
  for await (const chunk of stream) reader.push(chunk as Buffer);
  return { status: reader.end(), body: Buffer.concat(pieces) };
}
