/** Headers of tar archives: POSIX ustar with pax headers (IEEE 1003.1, pax "ustar Interchange Format"), GNU long names. */
import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";
import { trimEndOf } from "#lib/trim-end.ts";
import { decodeName, entryPath } from "./entry-path.ts";

// Header, one block: NAME(100) MODE(8) UID(8) GID(8) SIZE(12) MTIME(12) SUM(8) TYPE(1) LINK(100) MAGIC(6) VERSION(2)
// UNAME(32) GNAME(32) MAJOR(8) MINOR(8) PREFIX(155) pad(12)
export const BLOCK = 512;
/** A pax header or long name larger than this names nothing that a file system takes. */
const MAX_META_BYTES = 64 * 1024;
const EXECUTABLE = 0o100;

export interface TarHeader {
  /** One character. */
  readonly type: string;
  readonly name: string;
  readonly sizeBytes: number;
  /** Its owner may run it. */
  readonly isExecutable: boolean;
}

/** Null: the end of the archive. Throws `ProtocolError`. */
export function readHeader(block: Buffer): TarHeader | null {
  if (block.every((byte) => byte === 0)) return null;
  checkSum(block);
  return {
    type: String.fromCharCode(byteAt(block, 156)),
    name: nameOf(block),
    sizeBytes: octal(block.subarray(124, 136)),
    isExecutable: (octal(block.subarray(100, 108)) & EXECUTABLE) !== 0,
  };
}

/** Whether what follows names the next entry. Throws `ProtocolError` where that is absurdly long. */
export function isMeta({ type, sizeBytes }: TarHeader): boolean {
  if (type !== "x" && type !== "g" && type !== "L") return false;
  if (sizeBytes > MAX_META_BYTES) throw new ProtocolError("a tar header is too large");
  return true;
}

/** The name that a pax header or a GNU long name gives to the next entry; null: none. */
export function nameIn({ type }: TarHeader, bytes: Buffer): string | null {
  if (type === "L") return decodeName(untilNul(bytes));
  const records = paxRecords(bytes);
  if (["size", "linkpath"].some((key) => records.has(key)) || (type === "g" && records.has("path")))
    throw new ProtocolError("the tar archive uses a header that nothing needs here");
  return records.get("path") ?? null;
}

export interface TarPlace {
  readonly path: readonly string[];
  readonly isFolder: boolean;
}

/** Null: the root itself. Throws `ProtocolError` for links, devices and names that lead elsewhere. */
export function placeOf(type: string, name: string): TarPlace | null {
  const path = entryPath(name);
  const isFolder = type === "5" || name.endsWith("/"); // how tar wrote folders before POSIX
  if (type !== "5" && type !== "0" && type !== "\0")
    throw new ProtocolError("the tar archive holds a link or a device");
  if (path.length > 0) return { path, isFolder };
  if (!isFolder) throw new ProtocolError("the tar archive holds a file without a name");
  return null;
}

function nameOf(header: Buffer): string {
  const name = decodeName(untilNul(header.subarray(0, 100)));
  const hasPrefix = header.toString("latin1", 257, 263) === "ustar\0"; // GNU's own magic keeps other fields there
  const prefix = hasPrefix ? decodeName(untilNul(header.subarray(345, 500))) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

/** Records `LENGTH KEY=VALUE\n`, where LENGTH counts the whole record. */
function paxRecords(bytes: Buffer): ReadonlyMap<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(0x20, at);
    const digits = space < 0 ? "" : bytes.toString("latin1", at, space);
    const end = at + Number(digits);
    const equals = bytes.indexOf(0x3d, space);
    const isWhole = /^\d{1,6}$/.test(digits) && equals > space && equals < end && bytes[end - 1] === 0x0a;
    if (!isWhole) throw new ProtocolError("a tar header is damaged");
    records.set(bytes.toString("latin1", space + 1, equals), decodeName(bytes.subarray(equals + 1, end - 1)));
    at = end;
  }
  return records;
}

function untilNul(bytes: Buffer): Buffer {
  const nul = bytes.indexOf(0);
  return nul < 0 ? bytes : bytes.subarray(0, nul);
}

/** Octal digits, padded by spaces and NULs; larger numbers in GNU's binary form are beyond every limit here. */
function octal(field: Buffer): number {
  const text = trimEndOf(field.toString("latin1"), "\0 ").replace(/^ +/, "");
  if (!/^[0-7]{0,12}$/.test(text)) throw new ProtocolError("a tar header is damaged");
  return text === "" ? 0 : Number.parseInt(text, 8);
}

/** The sum of all bytes, those of the field itself counted as spaces. */
function checkSum(header: Buffer): void {
  let sum = 8 * 0x20;
  for (let at = 0; at < BLOCK; at++) if (at < 148 || at >= 156) sum += byteAt(header, at);
  if (sum !== octal(header.subarray(148, 156))) throw new ProtocolError("a tar header is damaged");
}
