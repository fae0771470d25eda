/** Which record types hold names inside their data, and how they are read, decompressed and written. */
import { ProtocolError } from "#core/errors.ts";
import { valueAt } from "#lib/at.ts";
import { nameBytes, readName, walkName } from "./name.ts";
import { TYPE } from "./types.ts";

/** `before` fixed bytes, then `names`, then `after` fixed bytes. */
interface NameLayout {
  readonly before: number;
  readonly names: number;
  readonly after: number;
  /** May be written compressed (the types of RFC 1035; RFC 3597 §4 forbids it for all others). */
  readonly compress: boolean;
}

const one: NameLayout = { before: 0, names: 1, after: 0, compress: true };
const two: NameLayout = { before: 0, names: 2, after: 0, compress: false };
const afterPreference: NameLayout = { before: 2, names: 1, after: 0, compress: false };

// Types whose names receivers must decompress (RFC 3597 §4). NAPTR's fixed part depends on its strings.
const LAYOUTS: ReadonlyMap<number, NameLayout> = new Map([
  [TYPE.NS, one],
  [3, one], // MD
  [4, one], // MF
  [TYPE.CNAME, one],
  [TYPE.SOA, { before: 0, names: 2, after: 20, compress: true }],
  [7, one], // MB
  [8, one], // MG
  [9, one], // MR
  [TYPE.PTR, one],
  [14, two], // MINFO
  [TYPE.MX, { ...afterPreference, compress: true }],
  [17, two], // RP
  [18, afterPreference], // AFSDB
  [21, afterPreference], // RT
  [26, { before: 2, names: 2, after: 0, compress: false }], // PX
  [TYPE.SRV, { before: 6, names: 1, after: 0, compress: false }],
  [TYPE.NAPTR, { before: 4, names: 1, after: 0, compress: false }],
  [36, afterPreference], // KX
  [TYPE.DNAME, { ...one, compress: false }],
]);

export interface NamedData {
  readonly before: Uint8Array;
  readonly names: readonly string[];
  readonly after: Uint8Array;
  readonly compress: boolean;
}

/** The start of the first name in data of this type; -1 where such data holds no names. */
function namesStart(bytes: Uint8Array, type: number, start: number, end: number): number {
  const layout = LAYOUTS.get(type);
  if (layout === undefined) return -1;
  let at = start + layout.before;
  // NAPTR (RFC 3403 §4.1): ORDER(2) PREFERENCE(2) FLAGS SERVICES REGEXP (each one length byte and text) REPLACEMENT
  if (type === TYPE.NAPTR) for (let text = 0; text < 3; text++) at += 1 + (bytes[at] ?? 0);
  if (at > end) throw new ProtocolError("DNS record data is shorter than its type");
  return at;
}

/** Throws `ProtocolError` unless the data of a known type is whole and its names are sound. */
export function checkData(bytes: Uint8Array, type: number, start: number, end: number): void {
  if (type === TYPE.A && end - start !== 4) throw new ProtocolError("an A record has 4 bytes");
  if (type === TYPE.AAAA && end - start !== 16) throw new ProtocolError("an AAAA record has 16 bytes");
  let at = namesStart(bytes, type, start, end);
  if (at < 0) return;
  const layout = valueAt(LAYOUTS, type);
  for (let name = 0; name < layout.names; name++) at = walkName(bytes, at);
  if (at + layout.after !== end) throw new ProtocolError("DNS record data does not fit its type");
}

/** Takes data that holds names apart; null for all other types, which are carried as they are. */
export function splitData(bytes: Uint8Array, type: number, start: number, end: number): NamedData | null {
  const first = namesStart(bytes, type, start, end);
  if (first < 0) return null;
  const layout = valueAt(LAYOUTS, type);
  const names: string[] = [];
  let at = first;
  for (let count = 0; count < layout.names; count++) {
    const read = readName(bytes, at);
    names.push(read.name);
    at = read.end;
  }
  if (at + layout.after !== end) throw new ProtocolError("DNS record data does not fit its type");
  const { compress } = layout;
  return { before: bytes.subarray(start, first), names, after: bytes.subarray(at, end), compress };
}

/** Data with every name written out in full, so that it can leave its message. */
export function plainData(bytes: Uint8Array, type: number, start: number, end: number): Uint8Array {
  const split = splitData(bytes, type, start, end);
  if (split === null) return Uint8Array.from(bytes.subarray(start, end));
  return Uint8Array.from(Buffer.concat([split.before, ...split.names.map(nameBytes), split.after]));
}
