/** Addresses of names as other threads find them in shared memory; `dns/shared-answers.ts` writes them. */
import type { NameChoice } from "#core/dial-plan.ts";
import type { Ip } from "#core/session.ts";
import { NAME_VALUES, NameTable } from "#lib/name-table.ts";
import { int32At } from "#lib/at.ts";
import { ipFromBytes, v4FromBytes } from "./ip.ts";

// Kind of an entry: RESOLVER * 2 for its A records, one more for its AAAA records; resolvers count from 1.
export const ADDRESS_KINDS = 2;
/** The kind of what the hosts table pins; without an address: it does not have the name. */
export const PINNED = 0;

// Values of an entry: COUNT(1) LENGTH(1) ADDRESS(4); the address is the first of so many.

/** Null where there is none. To be used at once. */
export function valuesOf(count: number, first: Uint8Array | null): Int32Array {
  const values = new Int32Array(NAME_VALUES);
  values[0] = count;
  values[1] = first?.length ?? 0;
  if (first !== null) new Uint8Array(values.buffer, ADDRESS_AT).set(first);
  return values;
}

// Of what the hosts table pins: COUNT(1) LENGTH(1) ADDRESSES(4): one address of 16 bytes, or as many of 4 as it says.

/** Null: so many, or of this kind, have no room in an entry. To be used at once. */
export function pinnedValues(addresses: readonly Uint8Array[]): Int32Array | null {
  const [first] = addresses;
  if (first === undefined) return null;
  if (addresses.length === 1) return valuesOf(1, first);
  if (addresses.length > MOST_PINNED || addresses.some(({ length }) => length !== 4)) return null;
  const values = valuesOf(addresses.length, first);
  const bytes = new Uint8Array(values.buffer);
  for (const [at, address] of addresses.entries()) bytes.set(address, ADDRESS_AT + at * 4);
  return values;
}

const MOST_PINNED = 4;
const ADDRESS_AT = 8;

export interface KnownAddress {
  readonly ip: Ip;
  /** The name has no other. */
  readonly isOnly: boolean;
}

interface Records {
  readonly first: Ip | null;
  readonly count: number;
}

export class KnownNames {
  readonly #table: NameTable;
  readonly #values = new Int32Array(NAME_VALUES);
  readonly #bytes = new Uint8Array(this.#values.buffer);

  constructor(memory: SharedArrayBuffer) {
    this.#table = new NameTable(memory);
  }

  /** One of the addresses that the hosts table has for it, each time another; null: it has none, or that is not known here. */
  pinned(name: string, nowMs: number): Ip | null {
    if (!this.#table.find(PINNED, name, this.#values, nowMs) || int32At(this.#values, 0) === 0) return null;
    const nth = Math.floor(Math.random() * int32At(this.#values, 0));
    return this.#address(int32At(this.#values, 1), nth);
  }

  /** The hosts table does not have it. False: it does, or that is not known here. */
  isUnpinned(name: string, nowMs: number): boolean {
    return this.#table.find(PINNED, name, this.#values, nowMs) && int32At(this.#values, 0) === 0;
  }

  /** The one that the main thread would dial first; null: only the main thread can tell. */
  addressOf(name: string, choice: NameChoice, nowMs: number): KnownAddress | null {
    const { number, ipv6, family, prefersV6 } = choice;
    if (family === 6 && !ipv6) return null;
    const kind = number * ADDRESS_KINDS;
    if (family === 6) return knownOf(this.#records(kind + 1, name, nowMs), 0);
    const v4 = this.#records(kind, name, nowMs);
    if (v4 === null) return null;
    if (family === 4 || !ipv6) return knownOf(v4, 0);
    const v6 = this.#records(kind + 1, name, nowMs);
    if (v6 === null) return v4.count === 0 || prefersV6 ? null : knownOf(v4, 1); // there may be more
    return v6.count > 0 && (prefersV6 || v4.count === 0) ? knownOf(v6, v4.count) : knownOf(v4, v6.count);
  }

  #records(kind: number, name: string, nowMs: number): Records | null {
    const values = this.#values;
    if (!this.#table.find(kind, name, values, nowMs)) return null;
    const count = int32At(values, 0);
    return { count, first: count === 0 ? null : this.#address(int32At(values, 1)) };
  }

  /** Only of addresses of four bytes there can be another than the first. */
  #address(length: number, nth = 0): Ip {
    const bytes = this.#bytes;
    if (length !== 4) return ipFromBytes(bytes.subarray(ADDRESS_AT, ADDRESS_AT + length));
    return v4FromBytes(bytes, ADDRESS_AT + nth * 4);
  }
}

function knownOf(records: Records | null, others: number): KnownAddress | null {
  const ip = records?.first ?? null;
  return records === null || ip === null ? null : { ip, isOnly: records.count + others === 1 };
}
