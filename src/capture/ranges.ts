/** Arithmetic on sets of addresses: sorted ranges that neither touch nor overlap, one family at a time. */
import type { Prefix } from "#core/capture.ts";
import type { IpPrefix } from "#core/session.ts";
import { bytesOfIp, ipFromBytes } from "#net/ip.ts";

/** Both ends inside. */
export interface AddressRange {
  readonly first: bigint;
  readonly last: bigint;
}

const bytesIn = (family: 4 | 6): number => (family === 4 ? 4 : 16);
const bitsIn = (family: 4 | 6): bigint => BigInt(bytesIn(family) * 8);

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex")}`);
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
    while (at < without.length && (without[at] as AddressRange).last < first) at++;
    for (let cut = at; cut < without.length && start <= last; cut++) {
      const hole = without[cut] as AddressRange;
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

/** `192.0.2.0-192.0.2.255`, a single address alone: how nftables reads an element of an interval set. */
export function rangeText({ first, last }: AddressRange, family: 4 | 6): string {
  const from = ipFromBytes(bytesOf(first, family));
  return first === last ? from : `${from}-${ipFromBytes(bytesOf(last, family))}`;
}

export function maskedPrefix({ ip, bits }: IpPrefix): Prefix {
  const bytes = bytesOfIp(ip);
  return prefixesOf(
    rangesOf([{ bytes, bits }], bytes.length === 4 ? 4 : 6),
    bytes.length === 4 ? 4 : 6,
  )[0] as Prefix;
}

export function everything(family: 4 | 6): readonly AddressRange[] {
  return [{ first: 0n, last: (1n << bitsIn(family)) - 1n }];
}
