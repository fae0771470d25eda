/** Field sections of HTTP/3 (RFC 9204) without a dynamic table: we allow the peer none, and use none. */
import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";
import { decodeHuffman } from "./huffman.ts";
import { STATIC_TABLE } from "./static-table.ts";

export type Field = readonly [name: string, value: string];

const MOST_FIELDS = 128;
const MOST_TEXT_BYTES = 16 * 1024;
const INDEXED_STATIC = 0xc0;
const LITERAL_STATIC_NAME = 0x50;
const LITERAL_NAME = 0x20;

/** `prefix` bits of the first byte hold the number, or its beginning (RFC 7541 §5.1). */
function encodeInteger(value: number, first: number, prefix: number): number[] {
  const most = 2 ** prefix - 1;
  if (value < most) return [first | value];
  const bytes = [first | most];
  let left = value - most;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  return [...bytes, left];
}

function encodeText(text: string, first: number, prefix: number): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([Buffer.from(encodeInteger(bytes.length, first, prefix)), bytes]);
}

/** Names are in lower case. */
export function encodeFields(fields: readonly Field[]): Buffer {
  return Buffer.concat([Buffer.of(0, 0), ...fields.map(encodeField)]);
}

function encodeField([name, value]: Field): Buffer {
  const whole = STATIC_TABLE.findIndex(([known, text]) => known === name && text === value);
  if (whole >= 0) return Buffer.from(encodeInteger(whole, INDEXED_STATIC, 6));
  const index = STATIC_TABLE.findIndex(([known]) => known === name);
  const head =
    index >= 0
      ? Buffer.from(encodeInteger(index, LITERAL_STATIC_NAME, 4))
      : encodeText(name, LITERAL_NAME, 3);
  return Buffer.concat([head, encodeText(value, 0, 7)]);
}

class Section {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get hasMore(): boolean {
    return this.#at < this.#bytes.length;
  }

  peek(): number {
    if (!this.hasMore) throw bad("it is cut short");
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
    throw bad("a number is too long");
  }

  /** The bit above the prefix says whether it is Huffman's. */
  text(prefix: number): string {
    const isHuffman = (this.peek() & (1 << prefix)) !== 0;
    const size = this.integer(prefix);
    if (size > MOST_TEXT_BYTES || this.#at + size > this.#bytes.length) throw bad("a text is too long");
    const bytes = this.#bytes.subarray(this.#at, this.#at + size);
    this.#at += size;
    if (!isHuffman) return Buffer.from(bytes).toString("latin1");
    const decoded = decodeHuffman(bytes, MOST_TEXT_BYTES);
    if (decoded === null) throw bad("a text is not Huffman's");
    return decoded.toString("latin1");
  }
}

/** Throws `ProtocolError`. */
export function decodeFields(bytes: Uint8Array): readonly Field[] {
  const section = new Section(bytes);
  if (section.integer(8) !== 0) throw bad("it refers to a dynamic table");
  section.integer(7);
  const fields: Field[] = [];
  while (section.hasMore) {
    if (fields.length === MOST_FIELDS) throw bad("it has too many fields");
    fields.push(decodeField(section));
  }
  return fields;
}

function decodeField(section: Section): Field {
  const first = section.peek();
  if ((first & 0x80) !== 0) {
    if ((first & 0x40) === 0) throw bad("it refers to a dynamic table");
    return staticField(section.integer(6));
  }
  if ((first & 0x40) !== 0) {
    if ((first & 0x10) === 0) throw bad("it refers to a dynamic table");
    const [name] = staticField(section.integer(4));
    return [name, section.text(7)];
  }
  if ((first & 0x20) === 0) throw bad("it refers to a dynamic table");
  const name = section.text(3);
  return [name, section.text(7)];
}

function staticField(index: number): Field {
  const field = STATIC_TABLE[index];
  if (field === undefined) throw bad("it refers to a field that is not in the table");
  return field;
}

function bad(why: string): ProtocolError {
  return new ProtocolError(`HTTP/3 field section: ${why}`);
}
