/** Reads one request of an HTTP/3 client (RFC 9114 §4.1): its fields, then its body as it comes. */
import { type Duplex, Readable } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { putBack } from "#core/stream.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import {
  H3_EXCESSIVE_LOAD,
  H3_FRAME_ERROR,
  H3_FRAME_UNEXPECTED,
  H3_MESSAGE_ERROR,
  H3_REQUEST_INCOMPLETE,
} from "./codes.ts";
import { decodeFields, type Field } from "./qpack.ts";
import { DATA_FRAME, HEADERS_FRAME, peekFrame } from "./request.ts";

/** A field section that is longer is refused. */
const MOST_SECTION_BYTES = 16 * 1024;
/** Of a body that is not read, besides the piece that it ends with: streams below keep as much, each. */
const AHEAD_BYTES = 16 * 1024;
/** CANCEL_PUSH, SETTINGS, PUSH_PROMISE, GOAWAY, MAX_PUSH_ID, and those of HTTP/2: none of them may be on a request's stream. */
const NEVER_HERE: ReadonlySet<number> = new Set([0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0d]);

export interface RequestReaderEvents {
  /** The type of the first frame is known. A function takes the stream over, with all its bytes unread. */
  takeStream(type: number): (() => void) | null;
  /** A field section has begun to come; called once, and before `onHeaders`. False: the request is refused. */
  onSection(): boolean;
  /** The body is the receiver's; it has an 'error' listener. */
  onHeaders(fields: readonly Field[], body: Readable): void;
  /** The request cannot be read: `code` ends the stream, or the whole connection. */
  onFault(code: number, ofConnection: boolean): void;
}

export class RequestReader {
  readonly #stream: Duplex;
  readonly #events: RequestReaderEvents;
  readonly #arrived = new ByteQueue();
  readonly #body: Readable;
  #state: "first" | "headers" | "body" | "trailers" | "over" = "first";
  #hasSection = false;
  /** Left of a DATA frame, and of a frame that is passed over. */
  #dataLeft = 0;
  #skipLeft = 0;
  readonly #onData = (bytes: Buffer): void => {
    this.#arrived.push(bytes);
    this.#run();
  };
  readonly #onEnd = (): void => this.#finish();
  readonly #onGone = (): void => this.#abandon();

  constructor(stream: Duplex, events: RequestReaderEvents) {
    this.#stream = stream;
    this.#events = events;
    this.#body = new Readable({ highWaterMark: AHEAD_BYTES, read: () => void stream.resume() });
    this.#body.on("error", () => {});
    stream.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onGone);
  }

  /** Nothing is read any more. */
  detach(): void {
    this.#state = "over";
    this.#stream.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onGone);
  }

  #run(): void {
    try {
      while (this.#step());
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(H3_MESSAGE_ERROR, false);
    }
  }

  /** False: more is needed. Throws `ProtocolError`. */
  #step(): boolean {
    if (this.#state === "over") return false;
    if (this.#state === "first") return this.#lookAtType();
    if (this.#skipLeft > 0) return this.#skip();
    if (this.#dataLeft > 0) return this.#takeData();
    const frame = peekFrame(this.#arrived);
    return frame !== null && this.#takeFrame(frame);
  }

  #lookAtType(): boolean {
    const head = this.#arrived.peekUpTo(8);
    const [first] = head;
    if (first === undefined || head.length < 1 << (first >> 6)) return false;
    const take = this.#events.takeStream(new WireReader().reset(head).varint());
    this.#state = "headers";
    if (take === null) return true;
    this.detach();
    this.#stream.pause();
    putBack(this.#stream, this.#arrived.takeAll());
    take();
    return false;
  }

  #skip(): boolean {
    const left = Math.min(this.#skipLeft, this.#arrived.length);
    this.#arrived.skip(left);
    this.#skipLeft -= left;
    return left > 0;
  }

  #takeData(): boolean {
    const piece = this.#arrived.takeSome(this.#dataLeft);
    if (piece.length === 0) return false;
    this.#dataLeft -= piece.length;
    if (!this.#body.push(piece)) this.#stream.pause();
    return true;
  }

  #takeFrame({ type, headBytes, bytes }: { type: number; headBytes: number; bytes: number }): boolean {
    if (NEVER_HERE.has(type)) return this.#fail(H3_FRAME_UNEXPECTED, true);
    if (type === HEADERS_FRAME) return this.#takeHeaders(headBytes, bytes);
    if (type === DATA_FRAME && this.#state !== "body") return this.#fail(H3_FRAME_UNEXPECTED, true);
    this.#arrived.skip(headBytes);
    if (type === DATA_FRAME) this.#dataLeft = bytes;
    else this.#skipLeft = bytes;
    return true;
  }

  #takeHeaders(headBytes: number, bytes: number): boolean {
    if (this.#state === "trailers") return this.#fail(H3_FRAME_UNEXPECTED, true);
    const mayCome = this.#hasSection || this.#events.onSection();
    this.#hasSection = true;
    if (!mayCome || bytes > MOST_SECTION_BYTES) return this.#fail(H3_EXCESSIVE_LOAD, false);
    const whole = this.#arrived.take(headBytes + bytes);
    if (whole === null) return false;
    const fields = decodeFields(whole.subarray(headBytes));
    const isTrailer = this.#state === "body";
    this.#state = isTrailer ? "trailers" : "body";
    if (!isTrailer) this.#events.onHeaders(fields, this.#body);
    return true;
  }

  #finish(): void {
    if (this.#state === "over") return;
    const isCut = this.#dataLeft > 0 || this.#skipLeft > 0 || this.#arrived.length > 0;
    if (isCut) return void this.#fail(H3_FRAME_ERROR, true);
    if (this.#state === "first" || this.#state === "headers")
      return void this.#fail(H3_REQUEST_INCOMPLETE, false);
    this.#state = "over";
    this.#body.push(null);
  }

  #fail(code: number, ofConnection: boolean): false {
    this.detach();
    this.#events.onFault(code, ofConnection);
    this.#abandon();
    return false;
  }

  /** The stream has ended in the middle. */
  #abandon(): void {
    if (!this.#body.readableEnded) this.#body.destroy(new ProtocolError("the request was given up"));
  }
}
