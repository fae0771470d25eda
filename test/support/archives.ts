/** Writes zip and tar.gz archives, good and bad ones: names and modes are taken as they are. */
import { crc32, deflateRawSync, gzipSync } from "node:zlib";

export interface Member {
  readonly name: string;
  readonly text?: string;
  readonly bytes?: Uint8Array;
  readonly folder?: boolean;
  /** As stat(2) has it; with the kind of file. */
  readonly mode?: number;
}

function contentsOf({ text, bytes, folder }: Member): Buffer {
  return folder === true ? Buffer.alloc(0) : Buffer.from(bytes ?? text ?? "");
}

function modeOf({ mode, folder }: Member): number {
  return mode ?? (folder === true ? 0o040755 : 0o100644);
}

/** PKWARE APPNOTE 6.3.10 §4.3. */
export function zip(members: readonly Member[]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const member of members) {
    const contents = contentsOf(member);
    const name = Buffer.from(member.name);
    const packed = deflateRawSync(contents);
    const shared = Buffer.alloc(26); // NEEDS FLAGS METHOD TIME DATE CRC PACKED SIZE NAME EXTRA, as in both headers
    shared.writeUInt16LE(20, 0);
    shared.writeUInt16LE(0x800, 2);
    shared.writeUInt16LE(8, 4);
    shared.writeUInt32LE(crc32(contents), 10);
    shared.writeUInt32LE(packed.length, 14);
    shared.writeUInt32LE(contents.length, 18);
    shared.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), shared, name, packed]);
    const rest = Buffer.alloc(14); // COMMENT DISK INTERNAL EXTERNAL OFFSET
    rest.writeUInt32LE((modeOf(member) << 16) >>> 0, 6);
    rest.writeUInt32LE(offset, 10);
    central.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x03", "latin1"), shared, rest, name]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(members.length, 8);
  end.writeUInt16LE(members.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}

/** POSIX ustar; names beyond 100 bytes by a pax header. */
export function tarGz(members: readonly Member[]): Buffer {
  const blocks = members.flatMap((member) => {
    const mode = modeOf(member);
    const type = { 0o040000: "5", 0o120000: "2", 0o020000: "3", 0o010000: "6" }[mode & 0o170000] ?? "0";
    const contents = type === "2" ? Buffer.alloc(0) : contentsOf(member);
    const name = Buffer.from(member.name);
    const isLong = name.length > 100;
    const own = [
      tarHeader(isLong ? name.subarray(0, 100) : name, type, contents.length, mode),
      padded(contents),
    ];
    return isLong ? [...paxPath(member.name), ...own] : own;
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

function paxPath(name: string): Buffer[] {
  const rest = ` path=${name}\n`;
  const bytes = Buffer.byteLength(rest);
  const length = bytes + String(bytes + 3).length;
  const record = Buffer.from(`${length}${rest}`);
  return [tarHeader(Buffer.from("PaxHeader"), "x", record.length, 0o644), padded(record)];
}

function tarHeader(name: Uint8Array, type: string, sizeBytes: number, mode: number): Buffer {
  const header = Buffer.alloc(512);
  header.set(name);
  header.write(`${(mode & 0o7777).toString(8).padStart(7, "0")}\0`, 100, "latin1");
  header.write(`${sizeBytes.toString(8).padStart(11, "0")}\0`, 124, "latin1");
  header.write("        ", 148, "latin1");
  header.write(type, 156, "latin1");
  header.write("ustar\x0000", 257, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

function padded(contents: Buffer): Buffer {
  return Buffer.concat([contents, Buffer.alloc(-contents.length & 511)]);
}
