/**
 * MaxMind DB files (format version 2.0, maxmind.github.io/MaxMind-DB): a binary tree over the bits of an address whose
 * leaves point into a section of typed values. Files are downloads: every offset is checked, every walk is bounded.
 */
import { ProtocolError } from "#core/errors.ts";
import { decodeValue, type MmdbValue } from "./mmdb-value.ts";
import { byteAt } from "#lib/at.ts";
import { atOnce, type Steps } from "#lib/steps.ts";

const MARKER = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1");
const MARKER_WITHIN = 128 * 1024;
const SEPARATOR_BYTES = 16;
/** Nodes that are looked at in one step of a long walk: some hundredths of a millisecond. */
const WALKED_AT_ONCE = 256;

export interface MmdbMetadata {
  readonly databaseType: string;
  readonly nodeCount: number;
  readonly recordBits: 24 | 28 | 32;
  readonly ipVersion: 4 | 6;
}

export class Mmdb {
  readonly metadata: MmdbMetadata;
  readonly #tree: Buffer;
  readonly #data: Buffer;
  /** Where the addresses of IPv4 begin: behind 96 zeros in a tree for IPv6. */
  readonly #v4Root: number;

  /** Throws `ProtocolError` where the bytes are no usable database. */
  constructor(bytes: Buffer) {
    const marker = bytes.lastIndexOf(MARKER);
    if (marker < 0 || marker < bytes.length - MARKER_WITHIN)
      throw new ProtocolError("no MaxMind database: its mark is missing");
    this.metadata = readMetadata(bytes.subarray(marker + MARKER.length));
    const { nodeCount, recordBits, ipVersion } = this.metadata;
    const treeBytes = (nodeCount * recordBits) / 4;
    if (treeBytes + SEPARATOR_BYTES > marker)
      throw new ProtocolError(`the database says that it has ${nodeCount} nodes, more than fit into it`);
    this.#tree = bytes.subarray(0, treeBytes);
    this.#data = bytes.subarray(treeBytes + SEPARATOR_BYTES, marker);
    this.#v4Root = ipVersion === 4 ? 0 : this.#descend(0, ZEROS, 96);
  }

  /** The record of an address of 4 or 16 bytes; null: there is none. Throws `ProtocolError` where it is damaged. */
  lookup(address: Uint8Array): MmdbValue | null {
    const offset = this.find(address);
    return offset < 0 ? null : this.valueAt(offset);
  }

  /** The offset of the record for an address; -1: there is none. Equal records share one offset. */
  find(address: Uint8Array): number {
    const short = address.length === 4;
    if (!short && this.metadata.ipVersion === 4) return -1;
    return this.#offsetOf(this.#descend(short ? this.#v4Root : 0, address, address.length * 8));
  }

  valueAt(offset: number): MmdbValue {
    return decodeValue(this.#data, offset);
  }

  /** The places of all records, each once per network. Throws `ProtocolError` where one lies outside. */
  *offsets(): Generator<number> {
    for (let node = 0; node < this.metadata.nodeCount; node++)
      for (const side of [0, 1] as const) {
        const offset = this.#offsetOf(this.#record(node, side));
        if (offset >= 0) yield offset;
      }
  }

  /** Walks everything once. Throws `ProtocolError` at the first fault, so that a download can be refused. */
  verify(): void {
    atOnce(this.verifyInSteps());
  }

  *verifyInSteps(): Steps<void> {
    yield* this.#checkDepth();
    const offsets = new Set<number>();
    let walked = 0;
    for (const offset of this.offsets()) {
      offsets.add(offset);
      if (++walked % WALKED_AT_ONCE === 0) yield;
    }
    for (const offset of offsets) {
      this.valueAt(offset);
      yield;
    }
  }

  /** No way through the tree may be longer than an address: a circle would be. A node is seen again only at greater depth. */
  *#checkDepth(): Steps<void> {
    const { nodeCount, ipVersion } = this.metadata;
    const depths = new Uint8Array(nodeCount);
    const waiting = nodeCount === 0 ? [] : [0];
    let walked = 0;
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      if (++walked % WALKED_AT_ONCE === 0) yield;
      for (const side of [0, 1] as const) {
        const next = this.#record(node, side);
        if (next >= nodeCount) continue;
        const depth = byteAt(depths, node) + 1;
        if (depth >= (ipVersion === 4 ? 32 : 128) || next === 0)
          throw new ProtocolError("the search tree of the database is deeper than an address is long");
        if (byteAt(depths, next) >= depth) continue; // a branch that several addresses share (6to4, mapped)
        depths[next] = depth;
        waiting.push(next);
      }
    }
  }

  #descend(root: number, address: Uint8Array, bits: number): number {
    const { nodeCount } = this.metadata;
    let node = root;
    for (let bit = 0; bit < bits && node < nodeCount; bit++)
      node = this.#record(node, (byteAt(address, bit >> 3) >> (7 - (bit & 7))) & 1);
    return node;
  }

  /** A record equal to the node count says "nothing here"; a larger one points behind the tree. */
  #offsetOf(record: number): number {
    const { nodeCount } = this.metadata;
    if (record <= nodeCount) return -1;
    const offset = record - nodeCount - SEPARATOR_BYTES;
    if (offset < 0 || offset >= this.#data.length)
      throw new ProtocolError("the search tree of the database points outside its data");
    return offset;
  }

  // A node: two records of 24 or 32 bits, or of 28 whose high nibbles share the middle byte.
  #record(node: number, side: number): number {
    const { recordBits } = this.metadata;
    if (recordBits === 24) return this.#tree.readUIntBE(node * 6 + side * 3, 3);
    if (recordBits === 32) return this.#tree.readUInt32BE(node * 8 + side * 4);
    const middle = byteAt(this.#tree, node * 7 + 3);
    const high = side === 0 ? middle >> 4 : middle & 15;
    return high * 0x100_0000 + this.#tree.readUIntBE(node * 7 + side * 4, 3);
  }
}

const ZEROS = new Uint8Array(16);

function readMetadata(bytes: Buffer): MmdbMetadata {
  const value = decodeValue(bytes, 0);
  if (!(value instanceof Map)) throw new ProtocolError("the database's description is no map");
  const nodeCount = value.get("node_count");
  const recordBits = value.get("record_size");
  const ipVersion = value.get("ip_version");
  const databaseType = value.get("database_type");
  if (value.get("binary_format_major_version") !== 2)
    throw new ProtocolError("the database is of an unknown format version; 2 can be read");
  if (typeof nodeCount !== "number" || !Number.isSafeInteger(nodeCount) || nodeCount < 0)
    throw new ProtocolError("the database does not say how many nodes it has");
  if (recordBits !== 24 && recordBits !== 28 && recordBits !== 32)
    throw new ProtocolError(
      `the database has records of ${String(recordBits)} bits; 24, 28 and 32 can be read`,
    );
  if (ipVersion !== 4 && ipVersion !== 6)
    throw new ProtocolError("the database is for neither IPv4 nor IPv6");
  return {
    databaseType: typeof databaseType === "string" ? databaseType : "",
    nodeCount,
    recordBits,
    ipVersion,
  };
}
