import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { DATA_TAG, MessageReader } from "./messages.ts";

/** Peers accept 4 MiB; smaller messages keep memory flat on both sides. */
const MAX_MESSAGE_DATA = 256 * 1024;

/** A stream whose data goes in gRPC messages. */
export class GunCodec implements StreamCodec {
  #emit: (plain: Buffer) => void = () => {};
  readonly #reader = new MessageReader((bytes, from, to) =>
    this.#emit(Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from)),
  );

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
    this.#emit = emit;
    this.#reader.take(wire, 0, wire.length);
  }

  openEnd(): void {
    // Peers simply reset; a torn message shows in the stream inside.
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
