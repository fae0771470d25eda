/** Networks as ranges of 16-byte addresses and back. IPv4 is in its mapped form; families never mix. */
import { unmap } from "#net/address/ip.ts";
import type { Cidr } from "#net/address/cidr.ts";

/** Appends the fewest networks that are exactly the range; false where it is none. */
export function networksOf(first: Uint8Array, last: Uint8Array, into: Cidr[]): boolean {
  const [shortFirst, shortLast] = [unmap(first), unmap(last)];
  const mapped = shortFirst.length === 4 && shortLast.length === 4;
  const [full, from, to] = mapped
    ? [32, toNumber(shortFirst), toNumber(shortLast)]
    : [128, toNumber(first), toNumber(last)];
  if (from > to) return false;
  for (let at = from; at <= to;) {
    let free = at === 0n ? full : Math.min(full, trailingZeros(at)); // host bits that the address allows
    while (at + ((1n << BigInt(free)) - 1n) > to) free--;
    into.push({ bytes: toBytes(at, full / 8), bits: full - free });
    at += 1n << BigInt(free);
  }
  return true;
}

/** Sorted, joined where they touch; 16 bytes each. */
export function rangeOf(networks: readonly Cidr[]): (readonly [first: Uint8Array, last: Uint8Array])[] {
  const family = (length: number) => joined(networks.filter(({ bytes }) => bytes.length === length));
  return [
    ...family(4).map(([first, last]) => [toMapped(first), toMapped(last)] as const),
    ...family(16).map(([first, last]) => [toBytes(first, 16), toBytes(last, 16)] as const),
  ];
}

function joined(networks: readonly Cidr[]): readonly (readonly [bigint, bigint])[] {
  const spans = networks.map(spanOf).sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
  const ranges: [bigint, bigint][] = [];
  for (const [first, last] of spans) {
    const before = ranges.at(-1);
    if (before === undefined || first > before[1] + 1n) ranges.push([first, last]);
    else if (last > before[1]) before[1] = last;
  }
  return ranges;
}

function spanOf({ bytes, bits }: Cidr): [bigint, bigint] {
  const hosts = (1n << BigInt(bytes.length * 8 - bits)) - 1n;
  const last = toNumber(bytes) | hosts;
  return [last ^ hosts, last];
}

function toMapped(address: bigint): Uint8Array {
  return toBytes(0xffff_0000_0000n | address, 16);
}

function toNumber(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return bytes.length === 4
    ? BigInt(view.getUint32(0))
    : (view.getBigUint64(0) << 64n) | view.getBigUint64(8);
}

function toBytes(value: bigint, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  if (length === 4) view.setUint32(0, Number(value));
  else {
    view.setBigUint64(0, value >> 64n);
    view.setBigUint64(8, value & 0xffff_ffff_ffff_ffffn);
  }
  return bytes;
}

function trailingZeros(value: bigint): number {
  const low = Number(value & 0xffff_ffffn);
  if (low !== 0) return 31 - Math.clz32(low & -low);
  return 32 + trailingZeros(value >> 32n);
}
