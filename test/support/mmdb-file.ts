/** A MaxMind database of IPv4 networks, by hand (format 2.0, maxmind.github.io/MaxMind-DB). */
import { cidrOf } from "#net/address/cidr.ts";

export type MmdbRecord = string | number | { readonly [key: string]: MmdbRecord };

const NONE = -1;
const SEPARATOR = Buffer.alloc(16);
const MARKER = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1");

/** Later networks win inside earlier ones. */
export function encodeMmdb(records: readonly (readonly [network: string, record: MmdbRecord])[]): Buffer {
  const nodes: [number, number][] = [[NONE, NONE]];
  const data: Buffer[] = [];
  let dataBytes = 0;
  for (const [network, record] of records) {
    const { bytes, bits } = cidrOf(network);
    const leaf = -2 - dataBytes;
    const body = encode(record);
    data.push(body);
    dataBytes += body.length;
    let node = 0;
    for (let at = 0; at < bits; at++) {
      const side = ((bytes[at >> 3] as number) >> (7 - (at & 7))) & 1;
      const pair = nodes[node] as [number, number];
      if (at === bits - 1) pair[side] = leaf;
      else {
        const next = pair[side] as number;
        if (next < 0) pair[side] = nodes.push([next, next]) - 1;
        node = pair[side] as number;
      }
    }
  }
  const valueOf = (record: number): number =>
    record >= 0 ? record : record === NONE ? nodes.length : nodes.length + SEPARATOR.length + (-2 - record);
  const tree = Buffer.alloc(nodes.length * 6);
  for (const [at, [left, right]] of nodes.entries()) {
    tree.writeUIntBE(valueOf(left), at * 6, 3);
    tree.writeUIntBE(valueOf(right), at * 6 + 3, 3);
  }
  const metadata = encode({
    node_count: nodes.length,
    record_size: 24,
    ip_version: 4,
    database_type: "test",
    binary_format_major_version: 2,
  });
  return Buffer.concat([tree, SEPARATOR, ...data, MARKER, metadata]);
}

// A value: CONTROL(type << 5 | size, size < 29) BODY; text 2, number 6 (big endian), map 7 (key, value, …).
function encode(value: MmdbRecord): Buffer {
  if (typeof value === "string")
    return Buffer.concat([Buffer.of((2 << 5) | value.length), Buffer.from(value)]);
  if (typeof value === "number") {
    const body = Buffer.alloc(4);
    body.writeUInt32BE(value);
    return Buffer.concat([Buffer.of((6 << 5) | 4), body]);
  }
  const entries = Object.entries(value);
  const body = entries.flatMap(([key, inner]) => [encode(key), encode(inner)]);
  return Buffer.concat([Buffer.of((7 << 5) | entries.length), ...body]);
}
