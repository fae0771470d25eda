/** Zip archives by their central directory (PKWARE APPNOTE 6.3.10 §4.3); stored and deflated entries. */
import { promisify } from "node:util";
import { crc32, inflateRaw } from "node:zlib";
import { messageOf, ProtocolError, errnoOf } from "#core/errors.ts";
import { Budget, tooLarge, type ArchiveLimits } from "./budget.ts";
import { decodeName, entryPath, type ArchiveEntry } from "./entry-path.ts";

const inflate = promisify(inflateRaw);

// End of central directory record, §4.3.16:
// SIG(4) DISK(2) CD_DISK(2) ENTRIES_HERE(2) ENTRIES(2) CD_SIZE(4) CD_OFFSET(4) COMMENT_LENGTH(2) COMMENT
const END_SIGNATURE = 0x06054b50;
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 0xffff;

// Central directory header, §4.3.12:
// SIG(4) MADE_BY(2) NEEDS(2) FLAGS(2) METHOD(2) TIME(2) DATE(2) CRC(4) PACKED(4) SIZE(4) NAME(2) EXTRA(2) COMMENT(2)
// DISK(2) INTERNAL(2) EXTERNAL(4) LOCAL_OFFSET(4) name extra comment
const CENTRAL_SIGNATURE = 0x02014b50;
const CENTRAL_BYTES = 46;

// Local file header, §4.3.7: SIG(4) NEEDS(2) FLAGS(2) METHOD(2) TIME(2) DATE(2) CRC(4) PACKED(4) SIZE(4) NAME(2) EXTRA(2)
const LOCAL_SIGNATURE = 0x04034b50;
const LOCAL_BYTES = 30;

const STORED = 0;
const DEFLATED = 8;
/** §4.4.4: bit 0 traditional encryption, bit 6 strong encryption, bit 13 masked headers. */
const ENCRYPTED_FLAGS = 0x2041;
/** stat(2): the kind of file in the upper half of EXTERNAL, where Unix tools put the mode. */
const KIND_MASK = 0o170000;
const REGULAR = 0o100000;
const FOLDER = 0o040000;

interface Listed {
  readonly name: Buffer;
  readonly method: number;
  readonly crc: number;
  readonly packedBytes: number;
  readonly sizeBytes: number;
  readonly localOffset: number;
  readonly next: number;
}

export async function* readZip(archive: Buffer, limits: ArchiveLimits): AsyncIterable<ArchiveEntry> {
  const end = findEnd(archive);
  const count = archive.readUInt16LE(end + 10);
  let at = archive.readUInt32LE(end + 16);
  const isSplit = archive.readUInt32LE(end + 4) !== 0 || archive.readUInt16LE(end + 8) !== count;
  if (isSplit || count === 0xffff || at === 0xffff_ffff)
    throw new ProtocolError("the zip archive is split or zip64");
  const budget = new Budget(archive.length, limits);
  for (let done = 0; done < count; done++) {
    budget.takeEntry();
    const listed = readListed(archive, at, end);
    at = listed.next;
    const name = decodeName(listed.name);
    const path = entryPath(name);
    if (path.length === 0) continue;
    yield { path, bytes: name.endsWith("/") ? null : await contents(archive, listed, budget) };
  }
}

/** The record is the last one, before a comment whose length it contains. */
function findEnd(archive: Buffer): number {
  const lowest = Math.max(0, archive.length - END_BYTES - MAX_COMMENT_BYTES);
  for (let at = archive.length - END_BYTES; at >= lowest; at--) {
    const matches = archive.readUInt32LE(at) === END_SIGNATURE;
    if (matches && at + END_BYTES + archive.readUInt16LE(at + 20) === archive.length) return at;
  }
  throw new ProtocolError("the zip archive is cut short or damaged");
}

function readListed(archive: Buffer, at: number, end: number): Listed {
  if (at + CENTRAL_BYTES > end || archive.readUInt32LE(at) !== CENTRAL_SIGNATURE)
    throw new ProtocolError("the zip archive's directory is damaged");
  const nameEnd = at + CENTRAL_BYTES + archive.readUInt16LE(at + 28);
  const next = nameEnd + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  if (next > end) throw new ProtocolError("the zip archive's directory is damaged");
  if ((archive.readUInt16LE(at + 8) & ENCRYPTED_FLAGS) !== 0)
    throw new ProtocolError("the zip archive is encrypted");
  const kind = archive.readUInt16LE(at + 40) & KIND_MASK;
  if (kind !== 0 && kind !== REGULAR && kind !== FOLDER)
    throw new ProtocolError("the zip archive holds a link or a device");
  return {
    name: archive.subarray(at + CENTRAL_BYTES, nameEnd),
    method: archive.readUInt16LE(at + 10),
    crc: archive.readUInt32LE(at + 16),
    packedBytes: archive.readUInt32LE(at + 20),
    sizeBytes: archive.readUInt32LE(at + 24),
    localOffset: archive.readUInt32LE(at + 42),
    next,
  };
}

async function contents(archive: Buffer, listed: Listed, budget: Budget): Promise<Uint8Array> {
  const { method, sizeBytes, crc } = listed;
  budget.take(sizeBytes);
  const packed = packedOf(archive, listed);
  const bytes = method === DEFLATED ? await unpack(packed, sizeBytes) : packed;
  if (method !== DEFLATED && method !== STORED) throw new ProtocolError(`zip method ${method} is not known`);
  if (bytes.length !== sizeBytes || crc32(bytes) !== crc)
    throw new ProtocolError("an entry of the zip archive is damaged");
  return bytes;
}

/** The local header repeats the name; a difference means an archive that is meant to be read in two ways. */
function packedOf(archive: Buffer, { name, localOffset: at, packedBytes }: Listed): Buffer {
  if (at + LOCAL_BYTES > archive.length || archive.readUInt32LE(at) !== LOCAL_SIGNATURE)
    throw new ProtocolError("an entry of the zip archive is damaged");
  const nameEnd = at + LOCAL_BYTES + archive.readUInt16LE(at + 26);
  const start = nameEnd + archive.readUInt16LE(at + 28);
  if (!archive.subarray(at + LOCAL_BYTES, nameEnd).equals(name))
    throw new ProtocolError("the zip archive names an entry in two ways");
  if (start + packedBytes > archive.length)
    throw new ProtocolError("the zip archive is cut short or damaged");
  return archive.subarray(start, start + packedBytes);
}

async function unpack(packed: Buffer, sizeBytes: number): Promise<Buffer> {
  try {
    return await inflate(packed, { maxOutputLength: Math.max(1, sizeBytes) }); // 0 is not a limit that zlib takes
  } catch (error) {
    if (errnoOf(error) === "ERR_BUFFER_TOO_LARGE") throw tooLarge();
    throw new ProtocolError(`an entry of the zip archive is damaged: ${messageOf(error)}`, { cause: error });
  }
}
