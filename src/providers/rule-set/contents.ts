/** What a rule list holds once it is read: something that matches. */
import type { RuleData } from "#core/rule.ts";
import type { NetworkTable } from "#core/condition.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { parseCidr, type Cidr } from "#net/address/cidr.ts";
import { parseDomainPattern, type DomainPattern } from "#lib/domain-pattern.ts";
import { DomainTable, type DomainTableParts } from "#lib/domain-table.ts";
import { anyOf } from "#router/tables/joined.ts";
import { openCondition, openStarredNames } from "#router/tables/open-condition.ts";
import { byteAt } from "#lib/at.ts";
import { atOnce, type Steps } from "#lib/steps.ts";

export interface Contents {
  readonly data: RuleData;
  /** Items that were left out, and why the first one was. */
  readonly skipped: { readonly count: number; readonly first: string };
  /** Conditions hold on to databases of the runtime that read them. Absent: none does. */
  readonly asksDatabases?: boolean;
}

interface BuiltDomains {
  readonly behavior: "domain";
  readonly parts: DomainTableParts;
  readonly starred: readonly DomainPattern[];
  readonly size: number;
}

interface BuiltNetworks {
  readonly behavior: "ipcidr";
  readonly parts: NetworkTable;
  /** The networks themselves. */
  readonly packed: Uint8Array;
  readonly size: number;
}

/** A list as plain data, mostly arrays of numbers: another thread can build it. */
export type BuiltList = BuiltDomains | BuiltNetworks;

/** A list as it was read, for `dataOf`. */
export interface ReadList extends Pick<Contents, "skipped"> {
  readonly list: BuiltList;
}

/** Patterns with `*` become a tree of objects, on the main thread; the others of a list cost those items only. */
const MOST_STARRED = 20_000;

/** Collects what is wrong with single items, which costs those items only. */
export class Skipped {
  count = 0;
  first = "";

  add(item: string, why: string): void {
    if (this.count++ === 0) this.first = `${JSON.stringify(item.slice(0, 80))}: ${why}`;
  }
}

/** Patterns of names (configuration.md §6.8). */
export function domainList(items: readonly string[]): ReadList {
  return atOnce(domainsInSteps(items));
}

function* domainsInSteps(items: readonly string[]): Steps<ReadList> {
  const skipped = new Skipped();
  const names: string[] = [];
  const covers: number[] = [];
  const starred: DomainPattern[] = [];
  for (const item of items) {
    const pattern = parseDomainPattern(item);
    if (pattern === null) skipped.add(item, "no domain pattern");
    else if (!pattern.starred) {
      names.push(pattern.name);
      covers.push(pattern.covers);
    } else if (starred.length < MOST_STARRED) starred.push(pattern);
    else skipped.add(item, `more than ${MOST_STARRED} patterns with * in one list`);
    yield;
  }
  const { parts } = yield* DomainTable.build(names, Uint8Array.from(covers));
  const size = names.length + starred.length;
  return { skipped, list: { behavior: "domain", parts, starred, size } };
}

/** The list of either behavior. */
export function listInSteps(items: readonly string[], behavior: BuiltList["behavior"]): Steps<ReadList> {
  return behavior === "domain" ? domainsInSteps(items) : networksInSteps(items);
}

/** Networks and bare addresses. */
function* networksInSteps(items: readonly string[]): Steps<ReadList> {
  const skipped = new Skipped();
  const cidrs: Cidr[] = [];
  for (const item of items) {
    const cidr = parseCidr(item);
    if (cidr === null) skipped.add(item, "no network");
    else cidrs.push(cidr);
    yield;
  }
  const { parts } = yield* CidrTable.build(cidrs);
  return { skipped, list: { behavior: "ipcidr", parts, packed: packNetworks(cidrs), size: cidrs.length } };
}

export function networkList(cidrs: readonly Cidr[], size: number): BuiltList {
  return { behavior: "ipcidr", parts: new CidrTable(cidrs).parts, packed: packNetworks(cidrs), size };
}

/** What matches by a built list; patterns with `*` become a tree, nothing else is made. */
export function* dataOf(list: BuiltList): Steps<RuleData> {
  return list.behavior === "domain" ? yield* domainData(list) : networkData(list);
}

function* domainData({ parts, starred, size }: BuiltDomains): Steps<RuleData> {
  const names = openCondition({ is: "names", table: parts });
  if (starred.length === 0) return { ...names, size };
  return Object.assign(anyOf([names, yield* openStarredNames(starred)]), { size });
}

/** A list of networks can also be published to the kernel. */
export interface NetworkData extends RuleData {
  networks(): readonly Cidr[];
}

function networkData({ parts, packed, size }: BuiltNetworks): NetworkData {
  const matcher = openCondition({ is: "networks", side: "ip", table: parts });
  return { ...matcher, size, networks: () => unpackNetworks(packed) };
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
    const length = byteAt(packed, at);
    cidrs.push({ bytes: packed.slice(at + 2, at + 2 + length), bits: byteAt(packed, at + 1) });
    at += 2 + length;
  }
  return cidrs;
}

export const NO_CONTENTS: RuleData = { ...openCondition({ is: "never" }), size: 0 };
