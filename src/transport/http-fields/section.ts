/** The numbers and texts that sections of HPACK and QPACK consist of (RFC 7541 §5). */
import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";
import { decodeHuffman } from "./huffman.ts";

/** A name in lower case, and its value; both as latin1. */
export type Field = readonly [name: string, value: string];

export const MOST_FIELDS = 128;
const MOST_TEXT_BYTES = 16 * 1024;

/** `prefix` bits of the first byte hold the number, or its beginning. */
export function encodeInteger(value: number, first: number, prefix: number): number[] {
  const most = 2 ** prefix - 1;
  if (value < most) return [first | value];
  const bytes = [first | most];
  let left = value - most;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  return [...bytes, left];
}

export function encodeText(text: string, first: number, prefix: number): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([Buffer.from(encodeInteger(bytes.length, first, prefix)), bytes]);
}

/** Reads one from its start. All methods throw `ProtocolError`. */
export class SectionReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get hasMore(): boolean {
    return this.#at < this.#bytes.length;
  }

  peek(): number {
    if (!this.hasMore) throw badSection("it is cut short");
    return byteAt(this.#bytes, this.#at);
  }

  integer(prefix: number): number {
    const most = 2 ** prefix - 1;
    let value = this.peek() & most;
    this.#at++;
    if (value < most) return value;
    for (let shift = 0; shift <= 28; shift += 7) {
      const byte = this.peek();
      this.#at++;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
    throw badSection("a number is too long");
  }

  /** The bit above the prefix says whether it is Huffman's. */
  text(prefix: number): string {
    const isHuffman = (this.peek() & (1 << prefix)) !== 0;
    const size = this.integer(prefix);
    if (size > MOST_TEXT_BYTES || this.#at + size > this.#bytes.length)
      throw badSection("a text is too long");
    const bytes = this.#bytes.subarray(this.#at, this.#at + size);
    this.#at += size;
    if (!isHuffman) return Buffer.from(bytes).toString("latin1");
    const decoded = decodeHuffman(bytes, MOST_TEXT_BYTES);
    if (decoded === null) throw badSection("a text is not Huffman's");
    return decoded.toString("latin1");
  }
}

export function badSection(why: string): ProtocolError {
  return new ProtocolError(`field section: ${why}`);
}
