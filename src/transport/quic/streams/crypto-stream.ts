/** Handshake bytes of one level, both ways (RFC 9000 §7.5): ordered, not limited by flow control. */
import { CRYPTO_BUFFER_EXCEEDED, QuicFault } from "#transport/quic/fault.ts";
import type { SentItem } from "#transport/quic/recovery/sent-packets.ts";
import { FRAME } from "#transport/quic/wire/frames.ts";
import { varintBytes, type WireWriter } from "#transport/quic/wire/writer.ts";
import { Reassembly } from "./reassembly.ts";

/** Of what has come out of order. */
const MOST_BYTES = 64 * 1024;
/** A frame with less data than this is not begun. */
const LEAST_ROOM = 32;

interface Piece {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export class CryptoStream {
  /** What is to be said, lost pieces first. */
  readonly #out: Piece[] = [];
  readonly #in = new Reassembly();
  #end = 0;

  write(bytes: Uint8Array): void {
    this.#out.push({ offset: this.#end, bytes });
    this.#end += bytes.length;
  }

  get hasData(): boolean {
    return this.#out.length > 0;
  }

  /** One CRYPTO frame within `room`; answers what was sent; null: there is nothing, or too little room. */
  writeFrame(out: WireWriter, room: number): SentItem | null {
    const piece = this.#out[0];
    if (piece === undefined || room < LEAST_ROOM) return null;
    const most = room - 1 - varintBytes(piece.offset) - 2;
    const sent = { offset: piece.offset, bytes: piece.bytes.subarray(0, most) };
    out.byte(FRAME.crypto);
    out.varint(sent.offset);
    out.varint2(sent.bytes.length);
    out.put(sent.bytes);
    if (sent.bytes.length === piece.bytes.length) this.#out.shift();
    else this.#out[0] = { offset: piece.offset + most, bytes: piece.bytes.subarray(most) };
    return { onAcked: () => {}, onLost: () => void this.#out.unshift(sent) };
  }

  /** Hands on what is in order. Throws `QuicFault` for too much that is not. */
  read(offset: number, bytes: Uint8Array, on: (bytes: Uint8Array) => void): void {
    if (offset + bytes.length > this.#in.next + MOST_BYTES)
      throw new QuicFault(CRYPTO_BUFFER_EXCEEDED, "handshake bytes far ahead of their turn");
    this.#in.add(offset, bytes, on);
  }
}
