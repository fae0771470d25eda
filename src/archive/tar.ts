/** tar.gz archives: POSIX ustar with pax headers (IEEE 1003.1, pax "ustar Interchange Format"), GNU long names. */
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { messageOf, ProtocolError, errnoOf } from "#core/errors.ts";
import { trimEndOf } from "#lib/trim-end.ts";
import { Budget, tooLarge, type ArchiveLimits } from "./budget.ts";
import { decodeName, entryPath, type ArchiveEntry } from "./entry-path.ts";
import { byteAt } from "#lib/at.ts";

const unzip = promisify(gunzip);

// Header, one block: NAME(100) MODE(8) UID(8) GID(8) SIZE(12) MTIME(12) SUM(8) TYPE(1) LINK(100) MAGIC(6) VERSION(2)
// UNAME(32) GNAME(32) MAJOR(8) MINOR(8) PREFIX(155) pad(12)
const BLOCK = 512;
/** What an entry may take besides its contents: its header, a pax header or long name, padding. */
const HEADER_BYTES_PER_ENTRY = 3 * BLOCK;
/** A pax header or long name larger than this names nothing that a file system takes. */
const MAX_META_BYTES = 64 * 1024;

export async function* readTarGz(archive: Buffer, limits: ArchiveLimits): AsyncIterable<ArchiveEntry> {
  const budget = new Budget(archive.length, limits);
  const tar = await unpack(archive, budget.leftBytes + limits.maxEntries * HEADER_BYTES_PER_ENTRY);
  let longName: string | null = null;
  for (let at = 0; ;) {
    const header = blockAt(tar, at);
    if (header.every((byte) => byte === 0)) return;
    checkSum(header);
    const sizeBytes = octal(header.subarray(124, 136));
    const body = at + BLOCK;
    at = body + Math.ceil(sizeBytes / BLOCK) * BLOCK;
    if (at > tar.length) throw new ProtocolError("the tar archive is cut short");
    budget.takeEntry();
    const bytes = tar.subarray(body, body + sizeBytes);
    const type = String.fromCharCode(byteAt(header, 156));
    if (type === "x" || type === "g" || type === "L") {
      longName = nameIn(type, bytes) ?? longName;
      continue;
    }
    const name: string = longName ?? nameOf(header);
    longName = null;
    const entry = entryOf(type, name, bytes);
    budget.take(bytes.length);
    if (entry !== null) yield entry;
  }
}

async function unpack(archive: Buffer, maxOutputLength: number): Promise<Buffer> {
  try {
    return await unzip(archive, { maxOutputLength });
  } catch (error) {
    if (errnoOf(error) === "ERR_BUFFER_TOO_LARGE") throw tooLarge();
    throw new ProtocolError(`the archive is damaged: ${messageOf(error)}`, { cause: error });
  }
}

function blockAt(tar: Buffer, at: number): Buffer {
  if (at + BLOCK > tar.length) throw new ProtocolError("the tar archive is cut short");
  return tar.subarray(at, at + BLOCK);
}

/** Null: the root itself. */
function entryOf(type: string, name: string, bytes: Uint8Array): ArchiveEntry | null {
  const path = entryPath(name);
  if (type === "5") return path.length === 0 ? null : { path, bytes: null };
  if (type !== "0" && type !== "\0") throw new ProtocolError("the tar archive holds a link or a device");
  if (name.endsWith("/")) return path.length === 0 ? null : { path, bytes: null }; // how tar wrote folders before POSIX
  if (path.length === 0) throw new ProtocolError("the tar archive holds a file without a name");
  return { path, bytes };
}

function nameOf(header: Buffer): string {
  const name = decodeName(untilNul(header.subarray(0, 100)));
  const hasPrefix = header.toString("latin1", 257, 263) === "ustar\0"; // GNU's own magic keeps other fields there
  const prefix = hasPrefix ? decodeName(untilNul(header.subarray(345, 500))) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

/** The name that a pax header or a GNU long name gives to the next entry; null: none. */
function nameIn(type: string, bytes: Buffer): string | null {
  if (bytes.length > MAX_META_BYTES) throw new ProtocolError("a tar header is too large");
  if (type === "L") return decodeName(untilNul(bytes));
  const records = paxRecords(bytes);
  if (["size", "linkpath"].some((key) => records.has(key)) || (type === "g" && records.has("path")))
    throw new ProtocolError("the tar archive uses a header that nothing needs here");
  return records.get("path") ?? null;
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
