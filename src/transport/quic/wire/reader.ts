/** Reads numbers and bytes from front to back (RFC 9000 §16). One object serves many packets: nothing is allocated per field. */
import { byteAt } from "#lib/at.ts";
import { FRAME_ENCODING_ERROR, QuicFault } from "#transport/quic/fault.ts";

const NOTHING = new Uint8Array(0);

export class WireReader {
  bytes: Uint8Array = NOTHING;
  /** Of the next byte. */
  at = 0;
  /** Behind the last byte that may be read. */
  end = 0;

  /** From `at` to `end` of these bytes, which are lent until the next call. */
  reset(bytes: Uint8Array, at = 0, end = bytes.length): this {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
    return this;
  }

  get left(): number {
    return this.end - this.at;
  }

  byte(): number {
    if (this.at >= this.end) throw cutShort();
    return byteAt(this.bytes, this.at++);
  }

  uint32(): number {
    const at = this.skip(4);
    return this.#word(at);
  }

  /** A number of 1, 2, 4 or 8 bytes; one above 2^53, which peers say to mean "no limit" or nothing, is that. */
  varint(): number {
    if (this.at >= this.end) throw cutShort();
    const first = byteAt(this.bytes, this.at);
    const size = 1 << (first >> 6);
    const at = this.skip(size);
    if (size === 1) return first;
    if (size === 2) return ((first & 0x3f) << 8) | byteAt(this.bytes, at + 1);
    if (size === 4) return this.#word(at) & 0x3fff_ffff;
    const value = (this.#word(at) & 0x3fff_ffff) * 2 ** 32 + this.#word(at + 4);
    return Math.min(value, Number.MAX_SAFE_INTEGER);
  }

  #word(at: number): number {
    const { bytes } = this;
    const high = (byteAt(bytes, at) << 24) | (byteAt(bytes, at + 1) << 16);
    return (high | (byteAt(bytes, at + 2) << 8) | byteAt(bytes, at + 3)) >>> 0;
  }

  /** Passes over so many bytes; answers where they begin. Throws `QuicFault` where there are fewer. */
  skip(size: number): number {
    if (size > this.end - this.at) throw cutShort();
    const at = this.at;
    this.at += size;
    return at;
  }

  /** A view of the next bytes, lent as those of the whole. */
  take(size: number): Uint8Array {
    const at = this.skip(size);
    return this.bytes.subarray(at, this.at);
  }
}

function cutShort(): QuicFault {
  return new QuicFault(FRAME_ENCODING_ERROR, "a field reaches beyond its packet");
}
