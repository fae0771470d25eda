/** Makes a matcher of a condition: the one meaning of every kind of condition, on whatever thread. */
import type { AddressSide, Condition, ConditionOf, TextTest } from "#core/condition.ts";
import type { FactName, Facts, Matcher } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import { byteAt } from "#lib/at.ts";
import { DomainTable, EXACT } from "#lib/domain-table.ts";
import { DomainTrie } from "#lib/domain-trie.ts";
import type { DomainPattern } from "#lib/domain-pattern.ts";
import { atOnce, type Steps } from "#lib/steps.ts";
import { codesAt, openCountries, openSystems, systemAt } from "#net/address/address-records.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { cidrHolds, isLanIp } from "#net/address/cidr.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { compileGlob } from "./glob.ts";
import { and, anyOf, not, or } from "./joined.ts";
import { listMatcher } from "./list-matcher.ts";

type Match = Matcher["match"];

/** Throws `ProtocolError` where a database is no usable one. */
export function openCondition(condition: Condition): Matcher {
  switch (condition.is) {
    case "always":
    case "never": {
      const verdict = condition.is === "always";
      return { reads: [], match: () => verdict, condition };
    }
    case "unknown":
      return {
        reads: [],
        match: () => undefined,
        firstMissing: ({ ip }) => (ip === undefined ? "ip" : null), // it may be what has to be looked up here
        condition,
      };
    case "name":
      return ofHost(condition, nameTest(condition));
    case "names": {
      const table = new DomainTable(condition.table);
      return ofHost(condition, (host) => table.lowest(host) >= 0);
    }
    case "starred-names":
      return atOnce(openStarredNames(condition.patterns));
    case "host":
      return ofHost(condition, textTest(condition.test, condition.text));
    case "program":
      return ofProgram(condition);
    case "network":
      return ofAddress(condition, (ip) => cidrHolds(condition, bytesOfIp(ip)));
    case "networks": {
      const table = CidrTable.of(condition.table);
      const { reversed = false } = condition;
      return ofAddress(condition, (ip) => table.holds(ip) !== reversed);
    }
    case "suffix":
      return ofAddress(condition, (ip) => endsIn(bytesOfIp(ip), condition.bytes, condition.bits));
    case "lan":
      return ofAddress(condition, (ip) => isLanIp(ip) !== condition.negated);
    case "country": {
      const codesOf = openCountries(bufferOf(condition.database));
      return ofAddress(condition, (ip) => codesAt(codesOf, ip).includes(condition.code));
    }
    case "system": {
      const systemOf = openSystems(bufferOf(condition.database));
      return ofAddress(condition, (ip) => systemAt(systemOf, ip)?.number === condition.number);
    }
    case "numbers":
      return ofNumber(condition);
    case "one-of":
      return ofWord(condition);
    case "and":
      return and(condition.parts.map(openCondition));
    case "or":
      return or(condition.parts.map(openCondition));
    case "not":
      return not(openCondition(condition.part));
    case "any":
      return anyOf(condition.parts.map(openCondition));
    case "list":
      return listMatcher(openCondition(condition.list), condition);
  }
}

/** The same in steps. */
export function* openStarredNames(patterns: readonly DomainPattern[]): Steps<Matcher> {
  const trie = yield* DomainTrie.build(patterns.values().map((pattern) => [pattern, true] as const));
  return ofHost({ is: "starred-names", patterns }, (host) => trie.has(host));
}

const HOST: readonly FactName[] = ["host"];
const PROGRAM: readonly FactName[] = ["process"];

function ofHost(condition: Condition, test: (host: string) => boolean): Matcher {
  const match: Match = ({ host }) => (host === undefined ? undefined : host !== null && test(host));
  return { reads: HOST, match, condition };
}

function nameTest({ name, covers }: ConditionOf<"name">): (host: string) => boolean {
  if (covers === EXACT) return (host) => host === name;
  const below = `.${name}`;
  return (host) => host === name || host.endsWith(below);
}

function textTest(test: TextTest, wanted: string): (text: string) => boolean {
  switch (test) {
    case "equals":
      return (text) => text === wanted;
    case "contains":
      return (text) => text.includes(wanted);
    case "glob":
      return compileGlob(wanted);
    case "expression": {
      const pattern = new RegExp(wanted);
      return (text) => pattern.test(text);
    }
  }
}

function ofProgram(condition: ConditionOf<"program">): Matcher {
  const { part, test, text } = condition;
  const holds = textTest(test, text);
  const match: Match = ({ process }) => {
    if (process === undefined) return undefined;
    const value = process?.[part] ?? null;
    return value !== null && holds(value.toLowerCase());
  };
  return { reads: PROGRAM, match, condition };
}

const OF_SIDE: Readonly<Record<AddressSide, readonly FactName[]>> = {
  ip: ["ip"],
  "known-ip": ["ip"],
  source: ["sourceIp"],
};

/** A rule with `no-resolve` answers "no" while the address is unknown, so that it is not looked up. */
function ofAddress(
  condition: ConditionOf<"network" | "networks" | "suffix" | "lan" | "country" | "system">,
  test: (address: Ip) => boolean,
): Matcher {
  const side = "side" in condition ? condition.side : "ip";
  const unknown = side === "known-ip" ? false : undefined;
  const ofSource: Match = ({ sourceIp }) => (sourceIp === undefined ? undefined : test(sourceIp));
  const ofDestination: Match = ({ ip }) => (ip === undefined ? unknown : ip !== null && test(ip));
  return { reads: OF_SIDE[side], match: side === "source" ? ofSource : ofDestination, condition };
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function endsIn(address: Uint8Array, suffix: Uint8Array, bits: number): boolean {
  if (address.length !== suffix.length) return false;
  for (let left = bits, at = address.length - 1; left > 0; left -= 8, at--) {
    const mask = left >= 8 ? 0xff : (1 << left) - 1;
    if (((byteAt(address, at) ^ byteAt(suffix, at)) & mask) !== 0) return false;
  }
  return true;
}

function ofNumber(condition: ConditionOf<"numbers">): Matcher {
  const { fact, ranges } = condition;
  const match: Match = (facts) => {
    const value = facts[fact];
    if (value === undefined || value === null) return value === null ? false : undefined;
    for (const [first, last] of ranges) if (value >= first && value <= last) return true;
    return false;
  };
  return { reads: [fact], match, condition };
}

function ofWord(condition: ConditionOf<"one-of">): Matcher {
  const { fact, words } = condition;
  const wanted: ReadonlySet<string> = new Set(words);
  const match: Match = (facts: Facts) => {
    const value = facts[fact];
    if (value === undefined || value === null) return value === null ? false : undefined;
    return wanted.has(fact === "inboundType" ? value.toUpperCase() : value);
  };
  return { reads: [fact], match, condition };
}
