/**
 * Reads one bucket of a bbolt file, in which other programs of the ecosystem keep what was chosen. Little endian:
 * PAGE = ID(8) FLAGS(2) COUNT(2) OVERFLOW(4), then elements; BRANCH element = POS(4) KSIZE(4) PGID(8);
 * LEAF element = FLAGS(4) POS(4) KSIZE(4) VSIZE(4), with key and value POS bytes behind its beginning;
 * META page = MAGIC(4) VERSION(4) PAGESIZE(4) FLAGS(4) ROOT(8) SEQUENCE(8) FREELIST(8) PGID(8) TXID(8) CHECKSUM(8).
 * Source: go.etcd.io/bbolt, internal/common.
 */
import { ProtocolError } from "#core/errors.ts";

const MAGIC = 0xed0cdaed;
const PAGE_HEAD = 16;
const ELEMENT = 16;
const BRANCH = 1;
const LEAF = 2;
/** Of a leaf element: its value is a bucket, ROOT(8) SEQUENCE(8), with the page behind it where ROOT is 0. */
const IS_BUCKET = 1;
const DEEPEST = 32;
/** Beyond these the file is damaged, or leads in a circle. */
const MOST_PAGES = 20_000;
const MOST_ENTRIES = 200_000;

/** Keys and values of a bucket of the first level; none where it is missing. Throws `ProtocolError`. */
export function readBoltBucket(bytes: Buffer, name: string): ReadonlyMap<string, string> {
  try {
    const { pageSize, root } = newestMeta(bytes);
    const page = (id: number) => bytes.subarray(id * pageSize);
    const bucket = entriesOf(page(root), page).find(({ key, isBucket }) => isBucket && key === name);
    if (bucket === undefined) return new Map();
    const inner = numberAt(bucket.value, 0);
    const entries = entriesOf(inner === 0 ? bucket.value.subarray(16) : page(inner), page);
    return new Map(entries.filter(({ isBucket }) => !isBucket).map(({ key, value }) => [key, String(value)]));
  } catch (error) {
    if (error instanceof RangeError) throw new ProtocolError("the file is cut off", { cause: error });
    throw error;
  }
}

interface Entry {
  readonly key: string;
  readonly value: Buffer;
  readonly isBucket: boolean;
}

type PageOf = (id: number) => Buffer;

function newestMeta(bytes: Buffer): { readonly pageSize: number; readonly root: number } {
  const pageSize = bytes.readUInt32LE(PAGE_HEAD + 8);
  if (bytes.readUInt32LE(PAGE_HEAD) !== MAGIC || pageSize < 512 || pageSize > 65_536)
    throw new ProtocolError("no bbolt file");
  const [newest] = [0, pageSize]
    .filter((at) => bytes.readUInt32LE(at + PAGE_HEAD) === MAGIC && isWhole(bytes.subarray(at + PAGE_HEAD)))
    .sort((a, b) => Number(bytes.readBigUInt64LE(b + 64) - bytes.readBigUInt64LE(a + 64)));
  if (newest === undefined) throw new ProtocolError("neither meta page is sound");
  return { pageSize, root: numberAt(bytes, newest + PAGE_HEAD + 16) };
}

/** FNV-1a of what comes before the checksum. */
function isWhole(meta: Buffer): boolean {
  let hash = 0xcbf29ce484222325n;
  for (const byte of meta.subarray(0, 56))
    hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return meta.readBigUInt64LE(56) === hash;
}

function entriesOf(first: Buffer, page: PageOf): readonly Entry[] {
  const found: Entry[] = [];
  let pages = 0;
  const visit = (bytes: Buffer, depth: number): void => {
    if (depth > DEEPEST || pages++ > MOST_PAGES || found.length > MOST_ENTRIES)
      throw new ProtocolError("the tree does not end");
    const kind = bytes.readUInt16LE(8);
    const count = bytes.readUInt16LE(10);
    for (let nth = 0; nth < count; nth++) {
      const at = PAGE_HEAD + nth * ELEMENT;
      if (kind === BRANCH) visit(page(numberAt(bytes, at + 8)), depth + 1);
      else if (kind === LEAF) found.push(entryAt(bytes, at));
      else throw new ProtocolError("a page of another kind");
    }
  };
  visit(first, 0);
  return found;
}

function entryAt(bytes: Buffer, at: number): Entry {
  const keyAt = at + bytes.readUInt32LE(at + 4);
  const valueAt = keyAt + bytes.readUInt32LE(at + 8);
  const end = valueAt + bytes.readUInt32LE(at + 12);
  if (end > bytes.length) throw new ProtocolError("the file is cut off");
  const isBucket = (bytes.readUInt32LE(at) & IS_BUCKET) !== 0;
  return { key: bytes.toString("utf8", keyAt, valueAt), value: bytes.subarray(valueAt, end), isBucket };
}

function numberAt(bytes: Buffer, at: number): number {
  return Number(bytes.readBigUInt64LE(at));
}
