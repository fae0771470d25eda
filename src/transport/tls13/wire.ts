/** The numbers and vectors of which TLS messages are made (RFC 8446 §3). */
import { TlsFault } from "./alerts.ts";

/** Reads one message from front to back. What is missing or left over is a `decode_error`. */
export class WireReader {
  readonly #bytes: Buffer;
  readonly #what: string;
  #at = 0;

  /** `what`: named in errors. */
  constructor(bytes: Buffer, what: string) {
    this.#bytes = bytes;
    this.#what = what;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  u8(): number {
    return this.bytes(1).readUInt8(0);
  }

  u16(): number {
    return this.bytes(2).readUInt16BE(0);
  }

  u24(): number {
    return this.bytes(3).readUIntBE(0, 3);
  }

  u32(): number {
    return this.bytes(4).readUInt32BE(0);
  }

  /** Shares memory with the message. */
  bytes(size: number): Buffer {
    if (size > this.left) throw new TlsFault("decode_error", `${this.#what} is cut short`);
    this.#at += size;
    return this.#bytes.subarray(this.#at - size, this.#at);
  }

  /** A vector with a length of one byte in front; `least` bytes at least. */
  vector8(least = 0): Buffer {
    return this.#atLeast(this.bytes(this.u8()), least);
  }

  vector16(least = 0): Buffer {
    return this.#atLeast(this.bytes(this.u16()), least);
  }

  vector24(least = 0): Buffer {
    return this.#atLeast(this.bytes(this.u24()), least);
  }

  #atLeast(bytes: Buffer, least: number): Buffer {
    if (bytes.length < least) throw new TlsFault("decode_error", `${this.#what}: a list is too short`);
    return bytes;
  }

  /** A vector of numbers of two bytes, with a length of two bytes in front. */
  numbers16(): number[] {
    return this.#numbers(this.vector16(2));
  }

  /** The same with a length of one byte. */
  numbers8(): number[] {
    return this.#numbers(this.vector8(2));
  }

  #numbers(bytes: Buffer): number[] {
    if (bytes.length % 2 !== 0) throw new TlsFault("decode_error", `${this.#what}: a list of odd length`);
    return Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readUInt16BE(index * 2));
  }

  /** To be called behind the last field. */
  end(): void {
    if (this.left > 0) throw new TlsFault("decode_error", `${this.#what}: ${this.left} bytes too many`);
  }
}

export function u16(value: number): Buffer {
  return Buffer.of(value >> 8, value & 0xff);
}

export function u24(value: number): Buffer {
  return Buffer.of(value >> 16, (value >> 8) & 0xff, value & 0xff);
}

/** Each number in two bytes, one behind the other, without a length. */
export function numbers16(values: readonly number[]): Buffer {
  return Buffer.concat(values.map(u16));
}

export function vector8(...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(body.length), body]);
}

export function vector16(...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([u16(body.length), body]);
}

export function vector24(...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([u24(body.length), body]);
}
