/**
 * Message: COMPRESSED(1)=0 LENGTH(4, big endian), then protobuf: TAG(1)=0x0a SIZE(varint) DATA. Several fields in one
 * message are read (the "multi" form); one is written, because many peers skip six fixed bytes.
 */
import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";

const HEAD_BYTES = 5;
export const DATA_TAG = 0x0a; // field 1, length-delimited
const MAX_VARINT_BYTES = 5;

type State = "message" | "tag" | "length" | "data" | "skip";

/** Finds the data in the messages of one stream. */
export class MessageReader {
  readonly onData: (bytes: Uint8Array, from: number, to: number) => void;
  #state: State = "message";
  #headSize = 0;
  #isCompressed = false;
  /** What is left of the message and of the field; both may span any number of reads, so neither needs a bound. */
  #messageLeft = 0;
  #fieldLeft = 0;
  #varintSize = 0;
  #isData = false;

  constructor(onData: MessageReader["onData"]) {
    this.onData = onData;
  }

  /** The bytes between the two indices. Throws `ProtocolError`. */
  take(bytes: Uint8Array, from: number, to: number): void {
    for (let at = from; at < to;) {
      if (this.#state === "message") this.#takeHead(byteAt(bytes, at++));
      else if (this.#state === "tag") this.#takeTag(byteAt(bytes, at++));
      else if (this.#state === "length") this.#takeLength(byteAt(bytes, at++));
      else {
        const end = Math.min(to, at + this.#fieldLeft);
        if (this.#state === "data") this.onData(bytes, at, end);
        this.#advance(end - at);
        at = end;
      }
    }
  }

  #takeHead(byte: number): void {
    if (this.#headSize === 0) this.#isCompressed = byte !== 0;
    else this.#messageLeft = this.#messageLeft * 256 + byte;
    if (++this.#headSize < HEAD_BYTES) return;
    this.#headSize = 0;
    if (this.#isCompressed) throw new ProtocolError("a compressed gRPC message");
    if (this.#messageLeft > 0) this.#state = "tag";
  }

  #takeTag(byte: number): void {
    if ((byte & 0x87) !== 2)
      throw new ProtocolError(`protobuf tag ${byte}, expected a length-delimited field`);
    this.#isData = byte === DATA_TAG;
    this.#fieldLeft = 0;
    this.#varintSize = 0;
    this.#state = "length";
    this.#messageLeft--;
  }

  #takeLength(byte: number): void {
    this.#fieldLeft += (byte & 0x7f) * 2 ** (7 * this.#varintSize++);
    this.#messageLeft--;
    if ((byte & 0x80) !== 0) {
      if (this.#varintSize === MAX_VARINT_BYTES || this.#messageLeft === 0)
        throw new ProtocolError("a protobuf length without an end");
      return;
    }
    if (this.#fieldLeft > this.#messageLeft)
      throw new ProtocolError("a protobuf field longer than its message");
    this.#state = this.#isData ? "data" : "skip";
    this.#advance(0);
  }

  #advance(taken: number): void {
    this.#fieldLeft -= taken;
    this.#messageLeft -= taken;
    if (this.#fieldLeft === 0) this.#state = this.#messageLeft === 0 ? "message" : "tag";
  }
}

/** In front of up to 2 MiB of data: the size takes as many bytes whatever it is, as protobuf allows. */
export const MESSAGE_HEAD_BYTES = 9;

export function writeMessageHead(out: Uint8Array, at: number, size: number): void {
  const messageBytes = size + MESSAGE_HEAD_BYTES - HEAD_BYTES;
  out[at] = 0;
  out[at + 1] = messageBytes >>> 24;
  out[at + 2] = messageBytes >>> 16;
  out[at + 3] = messageBytes >>> 8;
  out[at + 4] = messageBytes;
  out[at + 5] = DATA_TAG;
  out[at + 6] = (size & 0x7f) | 0x80;
  out[at + 7] = ((size >>> 7) & 0x7f) | 0x80;
  out[at + 8] = size >>> 14;
}
