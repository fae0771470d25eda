/** What a rule list holds once it is read: something that matches. */
import type { Facts, RuleData } from "#core/rule.ts";
import { CidrTable } from "#net/cidr-trie.ts";
import { parseCidr, type Cidr } from "#net/cidr.ts";
import { parseDomainPattern, type DomainPattern } from "#net/domain-pattern.ts";
import { DomainTable } from "#net/domain-table.ts";
import { DomainTrie } from "#net/domain-trie.ts";

export interface Contents {
  readonly data: RuleData;
  /** Items that were left out, and why the first one was. */
  readonly skipped: { readonly count: number; readonly first: string };
}

/** Collects what is wrong with single items, which costs those items only. */
export class Skipped {
  count = 0;
  first = "";

  add(item: string, why: string): void {
    if (this.count++ === 0) this.first = `${JSON.stringify(item.slice(0, 80))}: ${why}`;
  }
}

/** Patterns of names (configuration sheet §6.8). */
export function domainContents(items: readonly string[]): Contents {
  const skipped = new Skipped();
  const names: string[] = [];
  const covers: number[] = [];
  const starred: DomainPattern[] = [];
  for (const item of items) {
    const pattern = parseDomainPattern(item);
    if (pattern === null) skipped.add(item, "no domain pattern");
    else if (pattern.starred) starred.push(pattern);
    else {
      names.push(pattern.name);
      covers.push(pattern.covers);
    }
  }
  const table = new DomainTable(names, Uint8Array.from(covers));
  const stars =
    starred.length === 0 ? null : new DomainTrie(starred.map((pattern) => [pattern, true] as const));
  const match = ({ host }: Facts) =>
    host === undefined
      ? undefined
      : host !== null && (table.lowest(host) >= 0 || (stars !== null && stars.has(host)));
  return { data: { reads: ["host"], match, size: names.length + starred.length }, skipped };
}

/** Networks and bare addresses. */
export function cidrContents(items: readonly string[]): Contents {
  const skipped = new Skipped();
  const cidrs: Cidr[] = [];
  for (const item of items) {
    const cidr = parseCidr(item);
    if (cidr === null) skipped.add(item, "no network");
    else cidrs.push(cidr);
  }
  return { data: networkData(cidrs, cidrs.length), skipped };
}

/** A list of networks can be told to the kernel, too. */
export interface NetworkData extends RuleData {
  networks(): readonly Cidr[];
}

export function networkData(cidrs: readonly Cidr[], size: number): NetworkData {
  const table = new CidrTable(cidrs);
  const packed = packNetworks(cidrs);
  const match = ({ ip }: Facts) => (ip === undefined ? undefined : ip !== null && table.holds(ip));
  return { reads: ["ip"], match, size, networks: () => unpackNetworks(packed) };
}

// FAMILY BYTES(1) BITS(1) ADDRESS(4 | 16): an object a network would cost five times as much
function packNetworks(cidrs: readonly Cidr[]): Uint8Array {
  const packed = new Uint8Array(cidrs.reduce((sum, { bytes }) => sum + 2 + bytes.length, 0));
  let at = 0;
  for (const { bytes, bits } of cidrs) {
    packed.set([bytes.length, bits], at);
    packed.set(bytes, at + 2);
    at += 2 + bytes.length;
  }
  return packed;
}

function unpackNetworks(packed: Uint8Array): readonly Cidr[] {
  const cidrs: Cidr[] = [];
  for (let at = 0; at < packed.length;) {
    const length = packed[at] as number;
    cidrs.push({ bytes: packed.slice(at + 2, at + 2 + length), bits: packed[at + 1] as number });
    at += 2 + length;
  }
  return cidrs;
}

export const NO_CONTENTS: RuleData = { reads: [], match: () => false, size: 0 };
