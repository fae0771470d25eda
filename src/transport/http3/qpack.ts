/** Field sections of HTTP/3 (RFC 9204) without a dynamic table: we allow the peer none, and use none. */
import {
  badSection as bad,
  encodeInteger,
  encodeText,
  type Field,
  MOST_FIELDS,
  SectionReader,
} from "#transport/http-fields/section.ts";
import { STATIC_TABLE } from "./static-table.ts";

export type { Field } from "#transport/http-fields/section.ts";

const INDEXED_STATIC = 0xc0;
const LITERAL_STATIC_NAME = 0x50;
const LITERAL_NAME = 0x20;

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

/** Throws `ProtocolError`. */
export function decodeFields(bytes: Uint8Array): readonly Field[] {
  const section = new SectionReader(bytes);
  if (section.integer(8) !== 0) throw bad("it refers to a dynamic table");
  section.integer(7);
  const fields: Field[] = [];
  while (section.hasMore) {
    if (fields.length === MOST_FIELDS) throw bad("it has too many fields");
    fields.push(decodeField(section));
  }
  return fields;
}

function decodeField(section: SectionReader): Field {
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
