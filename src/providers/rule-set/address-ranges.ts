/** Networks as ranges of 16-byte addresses and back; IPv4 in its mapped form. */
import { unmap } from "#net/ip.ts";
import type { Cidr } from "#net/cidr.ts";

const FULL = 128;
const ALL_ONES = (1n << 128n) - 1n;

/** Appends the fewest networks that are exactly the range; false where `first` lies behind `last`. */
export function networksOf(first: Uint8Array, last: Uint8Array, into: Cidr[]): boolean {
  let from = toNumber(first);
  const to = toNumber(last);
  if (from > to) return false;
  while (from <= to) {
    let free = from === 0n ? FULL : trailingZeros(from); // host bits that the address allows
    while (from + ((1n << BigInt(free)) - 1n) > to) free--;
    into.push(toCidr(toBytes(from), FULL - free));
    from += 1n << BigInt(free);
  }
  return true;
}

/** Sorted, joined where they touch. */
export function rangeOf(networks: readonly Cidr[]): (readonly [first: Uint8Array, last: Uint8Array])[] {
  const spans = networks.map(spanOf).sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
  const joined: [bigint, bigint][] = [];
  for (const [first, last] of spans) {
    const before = joined.at(-1);
    if (before === undefined || first > before[1] + 1n) joined.push([first, last]);
    else if (last > before[1]) before[1] = last;
  }
  return joined.map(([first, last]) => [toBytes(first), toBytes(last)]);
}

function spanOf({ bytes, bits }: Cidr): [bigint, bigint] {
  const mapped = bytes.length === 4;
  const base = toNumber(mapped ? Uint8Array.of(...V4_PREFIX, ...bytes) : bytes);
  const hosts = (1n << BigInt((mapped ? 32 : FULL) - bits)) - 1n;
  return [base & (ALL_ONES ^ hosts), base | hosts];
}

const V4_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

function toCidr(bytes: Uint8Array, bits: number): Cidr {
  const short = bits >= 96 ? unmap(bytes) : bytes;
  return { bytes: short, bits: short.length === 4 ? bits - 96 : bits };
}

function toNumber(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
  return (view.getBigUint64(0) << 64n) | view.getBigUint64(8);
}

function toBytes(value: bigint): Uint8Array {
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, value >> 64n);
  view.setBigUint64(8, value & 0xffff_ffff_ffff_ffffn);
  return bytes;
}

function trailingZeros(value: bigint): number {
  const low = Number(value & 0xffff_ffffn);
  if (low !== 0) return 31 - Math.clz32(low & -low);
  return 32 + trailingZeros(value >> 32n);
}
