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
    return this.#bytes.readUInt8(this.#pass(1));
  }

  u16(): number {
    return this.#bytes.readUInt16BE(this.#pass(2));
  }

  u24(): number {
    return this.#bytes.readUIntBE(this.#pass(3), 3);
  }

  u32(): number {
    return this.#bytes.readUInt32BE(this.#pass(4));
  }

  /** Shares memory with the message. */
  bytes(size: number): Buffer {
    const from = this.#pass(size);
    return this.#bytes.subarray(from, this.#at);
  }

  /** Where the next `size` bytes begin; they are read then. */
  #pass(size: number): number {
    if (size > this.left) throw new TlsFault("decode_error", `${this.#what} is cut short`);
    this.#at += size;
    return this.#at - size;
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
  return numbers16([value]);
}

/** Each number in two bytes, one behind the other, without a length. */
export function numbers16(values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 2);
  let at = 0;
  for (const value of values) at = bytes.writeUInt16BE(value, at);
  return bytes;
}

export function vector8(...parts: readonly Uint8Array[]): Buffer {
  return withLength(1, parts);
}

export function vector16(...parts: readonly Uint8Array[]): Buffer {
  return withLength(2, parts);
}

export function vector24(...parts: readonly Uint8Array[]): Buffer {
  return withLength(3, parts);
}

/** A vector with a number of two bytes in front of its length: an extension, a key share. */
export function typedVector16(type: number, ...parts: readonly Uint8Array[]): Buffer {
  const bytes = withLength(2, parts, 2);
  bytes.writeUInt16BE(type, 0);
  return bytes;
}

/** In one piece of memory, behind so many bytes that the caller fills: a ClientHello is made of a hundred such. */
function withLength(lengthBytes: number, parts: readonly Uint8Array[], inFront = 0): Buffer {
  let size = 0;
  for (const part of parts) size += part.length;
  const bytes = Buffer.allocUnsafe(inFront + lengthBytes + size);
  let at = bytes.writeUIntBE(size, inFront, lengthBytes);
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
