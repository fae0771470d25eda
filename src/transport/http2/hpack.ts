/** Field sections of HTTP/2 (RFC 7541). What we say refers to no dynamic table; what peers say may. */
import {
  badSection,
  encodeInteger,
  encodeText,
  type Field,
  MOST_FIELDS,
  SectionReader,
} from "#transport/http-fields/section.ts";
import { STATIC_FIELDS } from "./hpack-table.ts";

/** What SETTINGS_HEADER_TABLE_SIZE is unless a side says otherwise: the most that a peer may use. */
const MOST_TABLE_BYTES = 4096;
/** Of an entry, besides its texts. */
const ENTRY_BYTES = 32;

const INDEXED = 0x80;
const KEPT_LITERAL = 0x40;
const TABLE_SIZE = 0x20;

/**
 * A section that stands by itself: literals that are not kept, some with names of the static table. `isFirst`: of the connection;
 * it says that we use no dynamic table, whatever the peer's settings become.
 */
export function encodeSection(fields: readonly Field[], isFirst: boolean): Buffer {
  const encoded = fields.map(([name, value]) => {
    const known = STATIC_FIELDS.findIndex(([other]) => other === name) + 1;
    const head = known > 0 ? Buffer.from(encodeInteger(known, 0, 4)) : encodeKnownless(name);
    return Buffer.concat([head, encodeText(value, 0, 7)]);
  });
  return Buffer.concat([...(isFirst ? [Buffer.of(TABLE_SIZE)] : []), ...encoded]);
}

function encodeKnownless(name: string): Buffer {
  return Buffer.concat([Buffer.of(0), encodeText(name, 0, 7)]);
}

const sizeOf = ([name, value]: Field): number => name.length + value.length + ENTRY_BYTES;

/** What the peer of one connection says. Every section has to go through it, in order: some add to its table. */
export class SectionDecoder {
  /** The latest first. */
  readonly #table: Field[] = [];
  #tableBytes = 0;
  #mostBytes = MOST_TABLE_BYTES;

  /** Throws `ProtocolError`: the connection cannot go on then. */
  decode(bytes: Uint8Array): readonly Field[] {
    const section = new SectionReader(bytes);
    const fields: Field[] = [];
    while (section.hasMore && (section.peek() & 0xe0) === TABLE_SIZE) this.#resize(section.integer(5));
    while (section.hasMore) {
      if (fields.length === MOST_FIELDS) throw badSection("it has too many fields");
      fields.push(this.#take(section));
    }
    return fields;
  }

  #take(section: SectionReader): Field {
    const first = section.peek();
    if ((first & INDEXED) !== 0) return this.#at(section.integer(7));
    const isKept = (first & KEPT_LITERAL) !== 0;
    if (!isKept && (first & TABLE_SIZE) !== 0) throw badSection("a size of the table behind its fields");
    const index = section.integer(isKept ? 6 : 4);
    const name = index === 0 ? section.text(7) : this.#at(index)[0];
    const field: Field = [name, section.text(7)];
    if (isKept) this.#keep(field);
    return field;
  }

  #at(index: number): Field {
    const field =
      index <= STATIC_FIELDS.length
        ? STATIC_FIELDS[index - 1]
        : this.#table[index - STATIC_FIELDS.length - 1];
    if (field === undefined) throw badSection("it refers to a field that is not in the table");
    return field;
  }

  /** One that is larger than the table empties it. */
  #keep(field: Field): void {
    this.#table.unshift(field);
    this.#tableBytes += sizeOf(field);
    this.#shrink();
  }

  #resize(bytes: number): void {
    if (bytes > MOST_TABLE_BYTES) throw badSection("a table that is larger than it may be");
    this.#mostBytes = bytes;
    this.#shrink();
  }

  #shrink(): void {
    while (this.#tableBytes > this.#mostBytes) {
      const field = this.#table.pop();
      if (field === undefined) return;
      this.#tableBytes -= sizeOf(field);
    }
  }
}
