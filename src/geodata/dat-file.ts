/**
 * GeoIP.dat and GeoSite.dat of v2ray: a protocol buffer that lists categories. The file is indexed once by reading the
 * few bytes before each category; a category is read at its first use, so the cost of a large file is that of its used
 * categories.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { ProtocolError } from "#core/errors.ts";
import { Fields, LENGTH } from "./protobuf.ts";

interface Span {
  readonly offset: number;
  readonly length: number;
}

/** Tag, length, tag, length and the longest name of a category that is looked at. */
const HEAD_BYTES = 256;
const MOST_CATEGORIES = 100_000;

export class DatFile {
  readonly path: string;
  readonly #index: ReadonlyMap<string, readonly Span[]>;
  readonly #version: string;

  private constructor(path: string, index: ReadonlyMap<string, readonly Span[]>, version: string) {
    this.path = path;
    this.#index = index;
    this.#version = version;
  }

  /** Throws `ProtocolError`, or what the file system throws. */
  static open(path: string): DatFile {
    return withFile(path, (fd, size, version) => new DatFile(path, indexOf(fd, size), version));
  }

  /** The same file where it lies under another name. */
  at(path: string): DatFile {
    return new DatFile(path, this.#index, this.#version);
  }

  /** Names of the categories in lower case. */
  get categories(): Iterable<string> {
    return this.#index.keys();
  }

  /** The messages of a category; empty where there is none. Throws `ProtocolError` where the file has been replaced meanwhile. */
  read(category: string): readonly Buffer[] {
    const spans = this.#index.get(category);
    if (spans === undefined) return [];
    return withFile(this.path, (fd, _size, version) => {
      if (version !== this.#version) throw new ProtocolError(`${this.path} has changed since it was indexed`);
      return spans.map((span) => readSpan(fd, span));
    });
  }
}

function withFile<T>(path: string, use: (fd: number, size: number, version: string) => T): T {
  const fd = openSync(path, "r");
  try {
    const { size, mtimeMs, ino } = fstatSync(fd);
    return use(fd, size, `${ino}/${size}/${mtimeMs}`);
  } finally {
    closeSync(fd);
  }
}

// List: repeated field 1, a message whose field 1 is the name: 0A length 0A length name ….
function indexOf(fd: number, size: number): ReadonlyMap<string, readonly Span[]> {
  const index = new Map<string, Span[]>();
  let count = 0;
  for (let at = 0; at < size;) {
    if (++count > MOST_CATEGORIES) throw new ProtocolError("the file lists too many categories");
    const head = readSpan(fd, { offset: at, length: Math.min(HEAD_BYTES, size - at) });
    const { length, bodyAt, name } = headOf(head);
    const span = { offset: at + bodyAt, length };
    if (span.offset + length > size) throw new ProtocolError("the file is cut short");
    const spans = index.get(name);
    if (spans === undefined) index.set(name, [span]);
    else spans.push(span);
    at = span.offset + length;
  }
  if (index.size === 0) throw new ProtocolError("the file lists no categories");
  return index;
}

const ENTRY = 0x0a; // field 1, length-delimited

function headOf(head: Buffer): { length: number; bodyAt: number; name: string } {
  let length = 0;
  let at = 1;
  for (let scale = 1; ; scale *= 128) {
    const byte = head[at++];
    if (head[0] !== ENTRY || byte === undefined || at > 6)
      throw new ProtocolError("the file is no list of categories");
    length += (byte & 127) * scale;
    if (byte < 128) break;
  }
  if (length === 0) return { length, bodyAt: at, name: "" };
  const inner = new Fields(head, at, Math.min(head.length, at + length));
  if (!inner.next() || inner.field !== 1 || inner.wire !== LENGTH)
    throw new ProtocolError("the file is no list of categories: one begins without its name");
  return { length, bodyAt: at, name: inner.text().toLowerCase() };
}

function readSpan(fd: number, { offset, length }: Span): Buffer {
  const bytes = Buffer.alloc(length);
  for (let got = 0; got < length;) {
    const count = readSync(fd, bytes, got, length - got, offset + got);
    if (count === 0) throw new ProtocolError("the file is cut short");
    got += count;
  }
  return bytes;
}
