/** What the databases of addresses say: countries and AS numbers, in the layouts of their makers. */
import { ProtocolError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "./ip.ts";
import { Mmdb } from "./mmdb.ts";
import type { MmdbValue } from "./mmdb-value.ts";

/** An autonomous system; its owner is "" where the database does not say. */
export interface AutonomousSystem {
  readonly number: number;
  readonly owner: string;
}

/** Layouts: a map with a number (GeoLite2-ASN, DBIP-ASN) or a text `AS13335` (ipinfo). Null: none. */
export type SystemOf = (address: Uint8Array) => AutonomousSystem | null;
/** Codes in lower case: of a country (Country layouts), or of any categories (a text or a list of texts). */
export type CodesOf = (address: Uint8Array) => readonly string[];

const NO_CODES: readonly string[] = [];

/** Throws `ProtocolError` where the file is damaged where it is looked at, or holds no countries. */
export function openCountries(bytes: Buffer): CodesOf {
  return openRecords(bytes, codesIn, NO_CODES, "countries");
}

/** Throws `ProtocolError` where the file is damaged where it is looked at, or holds no AS numbers. */
export function openSystems(bytes: Buffer): SystemOf {
  return openRecords<AutonomousSystem | null>(bytes, systemIn, null, "AS numbers");
}

function openRecords<T>(
  bytes: Buffer,
  read: (record: MmdbValue) => T | null,
  none: T,
  what: string,
): (address: Uint8Array) => T {
  const database = new Mmdb(bytes);
  refuseOther(database, read, what);
  // One entry per distinct record, which are few beside the networks that share them.
  const known = new Map<number, T>();
  return (address) => {
    const offset = database.find(address);
    if (offset < 0) return none;
    let value = known.get(offset);
    if (value === undefined) {
      value = read(database.valueAt(offset)) ?? none;
      known.set(offset, value);
    }
    return value;
  };
}

/** A damaged record says nothing. */
export function codesAt(codesOf: CodesOf, ip: Ip): readonly string[] {
  return undamaged(() => codesOf(bytesOfIp(ip)), NO_CODES);
}

/** The same for autonomous systems. */
export function systemAt(systemOf: SystemOf, ip: Ip): AutonomousSystem | null {
  return undamaged(() => systemOf(bytesOfIp(ip)), null);
}

function undamaged<T>(read: () => T, nothing: T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ProtocolError) return nothing;
    throw error;
  }
}

/** Records that may say nothing, such as a continent without a country, before the file counts as another kind. */
const ATTEMPTS = 1000;

function refuseOther(database: Mmdb, read: (record: MmdbValue) => unknown, what: string): void {
  let left = ATTEMPTS;
  for (const offset of database.offsets()) {
    if (read(database.valueAt(offset)) !== null) return;
    if (--left === 0) break;
  }
  throw new ProtocolError(`the database (${database.metadata.databaseType}) holds no ${what}`);
}

function codesIn(record: MmdbValue): readonly string[] | null {
  if (typeof record === "string") return [record.toLowerCase()];
  if (Array.isArray(record))
    return (record as readonly MmdbValue[]).filter(isText).map((code) => code.toLowerCase());
  if (!(record instanceof Map)) return null;
  const country: unknown =
    record.get("country") ?? record.get("registered_country") ?? record.get("country_code");
  const code: unknown = country instanceof Map ? country.get("iso_code") : country;
  return typeof code === "string" ? [code.toLowerCase()] : null;
}

function isText(value: MmdbValue): value is string {
  return typeof value === "string";
}

function systemIn(record: MmdbValue): AutonomousSystem | null {
  if (!(record instanceof Map)) return null;
  const number = numberIn(record);
  if (number === null) return null;
  const owner: unknown = record.get("autonomous_system_organization") ?? record.get("name");
  return { number, owner: typeof owner === "string" ? owner : "" };
}

function numberIn(record: ReadonlyMap<unknown, unknown>): number | null {
  const number: unknown = record.get("autonomous_system_number") ?? record.get("asn");
  if (typeof number === "number") return number;
  const digits = typeof number === "string" ? /^(?:AS)?(\d{1,10})$/i.exec(number)?.[1] : undefined;
  return digits === undefined ? null : Number(digits);
}
