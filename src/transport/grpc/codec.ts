import { ProtocolError } from "#core/errors.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { byteAt } from "#lib/at.ts";

/** Peers accept 4 MiB; smaller messages keep memory flat on both sides. */
const MAX_MESSAGE_DATA = 256 * 1024;
const DATA_TAG = 0x0a; // field 1, length-delimited
const MAX_VARINT_BYTES = 5;

type State = "message" | "tag" | "length" | "data" | "skip";

/**
 * Message: COMPRESSED(1)=0 LENGTH(4, big endian), then protobuf: TAG(1)=0x0a SIZE(varint) DATA. Several fields in one
 * message are read (the "multi" form); one is written, because many peers skip six fixed bytes.
 */
export class GunCodec implements StreamCodec {
  #state: State = "message";
  readonly #head = Buffer.alloc(5);
  #headSize = 0;
  /** What is left of the message and of the field; both may span any number of reads, so neither needs a bound. */
  #messageLeft = 0;
  #fieldLeft = 0;
  #varintSize = 0;
  #isData = false;

  seal(plain: Buffer): Buffer {
    if (plain.length === 0) return plain;
    if (plain.length <= MAX_MESSAGE_DATA) return encodeMessage(plain);
    const messages: Buffer[] = [];
    for (let at = 0; at < plain.length; at += MAX_MESSAGE_DATA)
      messages.push(encodeMessage(plain.subarray(at, at + MAX_MESSAGE_DATA)));
    return Buffer.concat(messages);
  }

  sealEnd(): null {
    return null;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    let at = 0;
    while (at < wire.length) {
      if (this.#state === "message") this.#takeHead(byteAt(wire, at++));
      else if (this.#state === "tag") this.#takeTag(byteAt(wire, at++));
      else if (this.#state === "length") this.#takeLength(byteAt(wire, at++));
      else {
        const end = Math.min(wire.length, at + this.#fieldLeft);
        if (this.#state === "data") emit(wire.subarray(at, end));
        this.#advance(end - at);
        at = end;
      }
    }
  }

  openEnd(): void {
    // Peers simply reset; a torn message shows in the stream inside.
  }

  #takeHead(byte: number): void {
    this.#head[this.#headSize++] = byte;
    if (this.#headSize < 5) return;
    this.#headSize = 0;
    if (this.#head[0] !== 0) throw new ProtocolError("a compressed gRPC message");
    this.#messageLeft = this.#head.readUInt32BE(1);
    if (this.#messageLeft > 0) this.#state = "tag";
  }

  #takeTag(byte: number): void {
    if ((byte & 0x87) !== 2)
      throw new ProtocolError(`protobuf tag ${byte}, expected a length-delimited field`);
    this.#isData = byte === DATA_TAG;
    this.#fieldLeft = 0;
    this.#varintSize = 0;
    this.#state = "length";
    this.#spend(1);
  }

  #takeLength(byte: number): void {
    this.#fieldLeft += (byte & 0x7f) * 2 ** (7 * this.#varintSize++);
    this.#spend(1);
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
    this.#spend(taken);
    if (this.#fieldLeft === 0) this.#state = this.#messageLeft === 0 ? "message" : "tag";
  }

  #spend(bytes: number): void {
    this.#messageLeft -= bytes;
  }
}

function encodeMessage(data: Uint8Array): Buffer {
  const varint: number[] = [];
  let left = data.length;
  for (; left > 0x7f; left >>>= 7) varint.push((left & 0x7f) | 0x80);
  varint.push(left);
  const out = Buffer.allocUnsafe(6 + varint.length + data.length);
  out[0] = 0;
  out.writeUInt32BE(1 + varint.length + data.length, 1);
  out[5] = DATA_TAG;
  out.set(varint, 6);
  out.set(data, 6 + varint.length);
  return out;
}
