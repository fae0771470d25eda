/** Arithmetic on sets of addresses: sorted ranges that neither touch nor overlap, one family at a time. */
import type { Prefix } from "#core/capture.ts";
import type { IpPrefix } from "#core/session.ts";
import { bytesOfIp, ipFromBytes } from "#net/address/ip.ts";
import { itemAt } from "#lib/at.ts";

/** Both ends inside. */
export interface AddressRange {
  readonly first: bigint;
  readonly last: bigint;
}

const bytesIn = (family: 4 | 6): number => (family === 4 ? 4 : 16);
const bitsIn = (family: 4 | 6): bigint => BigInt(bytesIn(family) * 8);

function numberOf(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length === 4) return BigInt(view.getUint32(0));
  return (view.getBigUint64(0) << 64n) | view.getBigUint64(8);
}

function bytesOf(value: bigint, family: 4 | 6): Uint8Array {
  const length = bytesIn(family);
  return Uint8Array.from(Buffer.from(value.toString(16).padStart(length * 2, "0"), "hex"));
}

/** Those of one family, merged. */
export function rangesOf(prefixes: readonly Prefix[], family: 4 | 6): readonly AddressRange[] {
  const found: AddressRange[] = [];
  for (const { bytes, bits } of prefixes) {
    if (bytes.length !== bytesIn(family)) continue;
    const size = 1n << (bitsIn(family) - BigInt(bits));
    const first = numberOf(bytes) & ~(size - 1n);
    found.push({ first, last: first + size - 1n });
  }
  return merge(found);
}

function merge(ranges: AddressRange[]): readonly AddressRange[] {
  const merged: { first: bigint; last: bigint }[] = [];
  for (const { first, last } of ranges.toSorted((a, b) =>
    a.first < b.first ? -1 : a.first > b.first ? 1 : 0,
  )) {
    const before = merged.at(-1);
    if (before === undefined || before.last + 1n < first) merged.push({ first, last });
    else if (before.last < last) before.last = last;
  }
  return merged;
}

/** What of `from` is in none of `without`. */
export function subtract(
  from: readonly AddressRange[],
  without: readonly AddressRange[],
): readonly AddressRange[] {
  const left: AddressRange[] = [];
  let at = 0;
  for (const { first, last } of from) {
    let start = first;
    while (at < without.length && itemAt(without, at).last < first) at++;
    for (let cut = at; cut < without.length && start <= last; cut++) {
      const hole = itemAt(without, cut);
      if (hole.first > last) break;
      if (hole.first > start) left.push({ first: start, last: hole.first - 1n });
      if (hole.last + 1n > start) start = hole.last + 1n;
    }
    if (start <= last) left.push({ first: start, last });
  }
  return left;
}

/** The fewest prefixes that make up the ranges. */
export function prefixesOf(ranges: readonly AddressRange[], family: 4 | 6): readonly Prefix[] {
  const width = bitsIn(family);
  const prefixes: Prefix[] = [];
  for (const { first, last } of ranges) {
    for (let start = first; start <= last;) {
      let size = start === 0n ? 1n << width : start & -start;
      while (start + size - 1n > last) size >>= 1n;
      prefixes.push({ bytes: bytesOf(start, family), bits: Number(width) - (size.toString(2).length - 1) });
      start += size;
    }
  }
  return prefixes;
}

/** The same as merged ranges of IPv4, as text; lists of tens of thousands are common there, so in plain numbers. */
export function rangeTexts4(prefixes: readonly Prefix[]): readonly string[] {
  const firsts: number[] = [];
  for (const { bytes, bits } of prefixes)
    if (bytes.length === 4) firsts.push(first4(bytes, bits) * LENGTHS + bits);
  const keys = Float64Array.from(firsts).sort();
  const texts: string[] = [];
  let [from, to] = [-1, -1];
  for (const key of keys) {
    const first = Math.floor(key / LENGTHS);
    const last = first + 2 ** (32 - (key % LENGTHS)) - 1;
    if (from >= 0 && first > to + 1) texts.push(rangeText4(from, to));
    if (from < 0 || first > to + 1) [from, to] = [first, last];
    else if (last > to) to = last;
  }
  if (from >= 0) texts.push(rangeText4(from, to));
  return texts;
}

/** A prefix length is below it: an address and its length are one number, and sort as one. */
const LENGTHS = 64;

function first4(bytes: Uint8Array, bits: number): number {
  const size = 2 ** (32 - bits);
  const address = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0);
  return Math.floor(address / size) * size;
}

function rangeText4(first: number, last: number): string {
  const text = (value: number) =>
    `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
  return first === last ? text(first) : `${text(first)}-${text(last)}`;
}

/** `192.0.2.0-192.0.2.255`, a single address alone: how nftables reads an element of an interval set. */
export function rangeText({ first, last }: AddressRange, family: 4 | 6): string {
  const from = ipFromBytes(bytesOf(first, family));
  return first === last ? from : `${from}-${ipFromBytes(bytesOf(last, family))}`;
}

export function maskedPrefix({ ip, bits }: IpPrefix): Prefix {
  const bytes = bytesOfIp(ip);
  return itemAt(
    prefixesOf(rangesOf([{ bytes, bits }], bytes.length === 4 ? 4 : 6), bytes.length === 4 ? 4 : 6),
    0,
  );
}

export function everything(family: 4 | 6): readonly AddressRange[] {
  return [{ first: 0n, last: (1n << bitsIn(family)) - 1n }];
}
