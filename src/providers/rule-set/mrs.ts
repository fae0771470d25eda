/** MRS, the binary form of a rule list: one zstd stream around the layout below (configuration.md §14). */
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import { promisify } from "node:util";
import { messageOf, ProtocolError } from "#core/errors.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { networksOf, rangeOf } from "./address-ranges.ts";
import { decodeTree, encodeTree } from "./succinct.ts";
import { byteAt } from "#lib/at.ts";

// magic "MRS" 01 | behaviour(1): 0 domain, 1 ipcidr | count(8) | extra length(8) extra | version(1)=1 | body; integers big-endian.
const MAGIC = Buffer.from("MRS\x01", "latin1");
const VERSION = 1;

/** A file of a few KiB can unfold into gigabytes. At the bound it is refused. */
const MOST_BYTES = 256 * 1024 * 1024;
/** Networks that ranges may unfold into. At the bound the file is refused. */
const MOST_NETWORKS = 500_000;

export type MrsList =
  | { readonly behavior: "domain"; readonly count: number; readonly items: readonly string[] }
  | { readonly behavior: "ipcidr"; readonly count: number; readonly items: readonly Cidr[] };

/** Throws `ProtocolError`. */
export async function decodeMrs(file: Uint8Array): Promise<MrsList> {
  return decodeMrsBody(await unpack(file));
}

async function unpack(file: Uint8Array): Promise<Buffer> {
  try {
    return await promisify(zstdDecompress)(file, { maxOutputLength: MOST_BYTES });
  } catch (error) {
    throw new ProtocolError(`no MRS file: ${messageOf(error)}`, { cause: error });
  }
}

/** Decodes the contents of the zstd stream. */
export function decodeMrsBody(bytes: Buffer): MrsList {
  const at = new Cursor(bytes);
  if (!at.take(4).equals(MAGIC)) throw new ProtocolError("no MRS file: it does not begin with MRS 01");
  const behavior = at.byte();
  const count = at.long();
  at.take(at.long()); // reserved
  if (at.byte() !== VERSION) throw new ProtocolError("this MRS file is of a later version");
  if (behavior === 0) {
    const tree = {
      leaves: at.take(at.long() * 8),
      bitmap: at.take(at.long() * 8),
      labels: at.take(at.long()),
    };
    return { behavior: "domain", count, items: decodeTree(tree) };
  }
  if (behavior === 1) return { behavior: "ipcidr", count, items: decodeRanges(at) };
  throw new ProtocolError(`this MRS file holds an unknown kind of list (${behavior})`);
}

function decodeRanges(at: Cursor): Cidr[] {
  const networks: Cidr[] = [];
  for (let left = at.long(); left > 0; left--) {
    if (!networksOf(at.take(16), at.take(16), networks))
      throw new ProtocolError("this MRS file holds a range that ends before it begins");
    if (networks.length > MOST_NETWORKS) throw new ProtocolError("this MRS file holds too many networks");
  }
  return networks;
}

/** `items` are patterns in ASCII; the names of `+.` patterns go in beside them (`decodeTree`). */
export function encodeDomainMrs(items: readonly string[]): Promise<Buffer> {
  const apexes = items.filter((item) => item.startsWith("+.")).map((item) => item.slice(2));
  const { leaves, bitmap, labels } = encodeTree([...items, ...apexes]);
  return pack(0, items.length, [
    long(leaves.length / 8),
    leaves,
    long(bitmap.length / 8),
    bitmap,
    long(labels.length),
    labels,
  ]);
}

/** Neighbouring and overlapping networks become one range. */
export function encodeCidrMrs(items: readonly Cidr[]): Promise<Buffer> {
  const ranges = rangeOf(items);
  return pack(1, items.length, [long(ranges.length), ...ranges.flat()]);
}

function pack(behavior: number, count: number, body: readonly Uint8Array[]): Promise<Buffer> {
  const head = [MAGIC, Buffer.of(behavior), long(count), long(0), Buffer.of(VERSION)];
  const bytes = Buffer.concat([...head, ...body]);
  const params = { [constants.ZSTD_c_compressionLevel]: 19 };
  // With the size known beforehand a small list gets small tables: 1 ms instead of 90.
  return promisify(zstdCompress)(bytes, { params, pledgedSrcSize: bytes.length });
}

function long(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return byteAt(this.take(1), 0);
  }

  /** Not negative, and no more than there are bytes: every integer here counts something that takes at least one. */
  long(): number {
    const value = this.take(8).readBigInt64BE();
    if (value < 0n || value > BigInt(MOST_BYTES))
      throw new ProtocolError(`this MRS file counts ${value} things`);
    return Number(value);
  }

  take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new ProtocolError("this MRS file is cut short");
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }
}
