/** Writes numbers and bytes from front to back (RFC 9000 §16) into memory of its owner. */

const NOTHING = new Uint8Array(0);

export class WireWriter {
  bytes: Uint8Array;
  /** Of the next byte. */
  at = 0;

  /** The caller sees to it that what is written fits. */
  constructor(bytes: Uint8Array = NOTHING) {
    this.bytes = bytes;
  }

  /** From here on it writes there. */
  reset(bytes: Uint8Array, at: number): this {
    this.bytes = bytes;
    this.at = at;
    return this;
  }

  byte(value: number): void {
    this.bytes[this.at++] = value;
  }

  uint16(value: number): void {
    this.bytes[this.at++] = value >>> 8;
    this.bytes[this.at++] = value;
  }

  uint32(value: number): void {
    this.uint16(value >>> 16);
    this.uint16(value & 0xffff);
  }

  /** In as few bytes as it needs. */
  varint(value: number): void {
    if (value < 0x40) this.byte(value);
    else if (value < 0x4000) this.varint2(value);
    else if (value < 0x4000_0000) this.uint32(0x8000_0000 + value);
    else {
      this.uint32(0xc000_0000 + Math.floor(value / 2 ** 32));
      this.uint32(value >>> 0);
    }
  }

  /** In two bytes, for a length that is known later; below 2^14. */
  varint2(value: number): void {
    this.uint16(0x4000 | value);
  }

  put(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** So many zeros, which are PADDING frames. */
  zeros(count: number): void {
    this.bytes.fill(0, this.at, this.at + count);
    this.at += count;
  }
}

/** How many bytes a number takes. */
export function varintBytes(value: number): number {
  return value < 0x40 ? 1 : value < 0x4000 ? 2 : value < 0x4000_0000 ? 4 : 8;
}
