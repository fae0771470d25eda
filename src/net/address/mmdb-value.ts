/** Values of MaxMind DB files: a control byte with type and size, then the payload; pointers lead to earlier values. */
import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";

export type MmdbValue =
  | string
  | number
  | bigint
  | boolean
  | Uint8Array
  | readonly MmdbValue[]
  | ReadonlyMap<string, MmdbValue>;

/** As deep as the reference reader goes. At the bound the record is refused. */
const DEEPEST = 64;
/** Values in one record, those behind pointers counted each time. At the bound the record is refused. */
const MOST_VALUES = 100_000;

const TYPE = {
  pointer: 1,
  text: 2,
  double: 3,
  bytes: 4,
  uint16: 5,
  uint32: 6,
  map: 7,
  int32: 8,
  uint64: 9,
  uint128: 10,
  list: 11,
  flag: 14,
  float: 15,
} as const;

/** Throws `ProtocolError`. */
export function decodeValue(section: Buffer, offset: number): MmdbValue {
  return new Decoder(section, offset).value(0);
}

class Decoder {
  readonly #bytes: Buffer;
  #at: number;
  #values = 0;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  value(depth: number): MmdbValue {
    if (depth > DEEPEST) throw new ProtocolError("a record of the database is nested too deeply");
    if (++this.#values > MOST_VALUES) throw new ProtocolError("a record of the database is too large");
    const control = this.#uint(1);
    let type = control >> 5;
    if (type === TYPE.pointer) return this.#follow(control, depth);
    if (type === 0) type = this.#uint(1) + 7;
    return this.#payload(type, this.#size(control & 31), depth);
  }

  // Sizes from 29 on are in the one, two or three bytes behind the control byte.
  #size(low: number): number {
    if (low < 29) return low;
    if (low === 29) return 29 + this.#uint(1);
    return low === 30 ? 285 + this.#uint(2) : 65_821 + this.#uint(3);
  }

  // Pointer: 001SSVVV, then S+1 bytes; the value is counted from the start of the section.
  #follow(control: number, depth: number): MmdbValue {
    const size = (control >> 3) & 3;
    const high = control & 7;
    const target =
      size === 0
        ? high * 0x100 + this.#uint(1)
        : size === 1
          ? high * 0x1_0000 + this.#uint(2) + 2048
          : size === 2
            ? high * 0x100_0000 + this.#uint(3) + 526_336
            : this.#uint(4);
    const back = this.#at;
    if (target >= this.#bytes.length)
      throw new ProtocolError("a record of the database points outside its data");
    this.#at = target;
    if (byteAt(this.#bytes, target) >> 5 === TYPE.pointer)
      throw new ProtocolError("a record of the database points to a pointer");
    const value = this.value(depth + 1);
    this.#at = back;
    return value;
  }

  #payload(type: number, size: number, depth: number): MmdbValue {
    if (type === TYPE.map) return this.#map(size, depth);
    if (type === TYPE.list) return this.#list(size, depth);
    if (type === TYPE.flag) return flagOf(size);
    if (type === TYPE.text) return this.#text(size);
    if (type === TYPE.bytes) return Uint8Array.from(this.#take(size));
    if (type === TYPE.double && size === 8) return this.#take(8).readDoubleBE();
    if (type === TYPE.float && size === 4) return this.#take(4).readFloatBE();
    if (type === TYPE.uint16 && size <= 2) return this.#uint(size);
    if (type === TYPE.uint32 && size <= 4) return this.#uint(size);
    if (type === TYPE.int32 && size <= 4) return this.#uint(size) | 0;
    if ((type === TYPE.uint64 && size <= 8) || (type === TYPE.uint128 && size <= 16))
      return BigInt(`0x0${this.#take(size).toString("hex")}`);
    throw new ProtocolError("a record of the database has a value of unknown type or size");
  }

  #map(size: number, depth: number): ReadonlyMap<string, MmdbValue> {
    const map = new Map<string, MmdbValue>();
    for (let left = size; left > 0; left--) {
      const key = this.value(depth + 1);
      if (typeof key !== "string")
        throw new ProtocolError("a record of the database has a key that is no text");
      map.set(key, this.value(depth + 1));
    }
    return map;
  }

  #list(size: number, depth: number): readonly MmdbValue[] {
    const list: MmdbValue[] = [];
    for (let left = size; left > 0; left--) list.push(this.value(depth + 1));
    return list;
  }

  #text(size: number): string {
    try {
      return UTF8.decode(this.#take(size));
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      throw new ProtocolError("a record of the database has a text that is not UTF-8", { cause: error });
    }
  }

  #uint(size: number): number {
    const bytes = this.#take(size);
    return size === 0 ? 0 : bytes.readUIntBE(0, size);
  }

  #take(size: number): Buffer {
    const end = this.#at + size;
    if (end > this.#bytes.length) throw new ProtocolError("a record of the database is cut short");
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

function flagOf(size: number): boolean {
  if (size > 1) throw new ProtocolError("a record of the database has a boolean that is neither");
  return size === 1;
}
