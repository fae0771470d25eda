/** A rule list made ready for matching: consecutive rules that can share a table are one step, the others one each. */
import type { Facts, FactName, Rule } from "#core/rule.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { DomainTable } from "#lib/domain-table.ts";
import { atOnce, type Steps } from "#lib/steps.ts";
import { mergeKeyOf } from "./mergeable.ts";
import type { CidrSide, MergeKey } from "./mergeable.ts";
import { itemAt } from "#lib/at.ts";

/** Answers of `Segment.find` besides a position. */
export const NONE = -1;
export const UNDECIDED = -2;

/** Fewer rules than this are as fast one by one. */
const SMALLEST_SEGMENT = 6;

/** How many rules a long work looks at before it may pause. */
export const RULES_AT_ONCE = 256;

/** One table over the consecutive rules `first` to `last` of a list. */
export interface Segment {
  readonly reads: readonly FactName[];
  /** Position in the segment of the first rule after `after` that matches, NONE, or CANNOT_TELL. */
  find(facts: Facts, after: number, disabled: Uint8Array | null): number;
}

export interface Step {
  /** Positions in the list. */
  readonly first: number;
  readonly last: number;
  /** Null: a single rule. */
  readonly segment: Segment | null;
}

export interface RuleList {
  /** `rules`, or the name of a sub-rule list. */
  readonly name: string;
  readonly rules: readonly Rule[];
  readonly steps: readonly Step[];
  /** 1 where the rule is switched off; null while none is. */
  disabled: Uint8Array | null;
}

export function compileList(name: string, rules: readonly Rule[]): RuleList {
  return atOnce(compileInSteps(name, rules));
}

/** `before`: a list whose tables are taken where they are over the same rules. */
export function* compileInSteps(name: string, rules: readonly Rule[], before?: RuleList): Steps<RuleList> {
  const steps: Step[] = [];
  const known = new Map(before?.steps.map((step) => [step.first, step]));
  for (let first = 0; first < rules.length;) {
    const same = before === undefined ? null : yield* stepOfBefore(rules, before, known.get(first));
    if (same !== null) {
      steps.push(same);
      first = same.last + 1;
      continue;
    }
    const keys = yield* mergeableRun(rules, first);
    if (keys.length < SMALLEST_SEGMENT) {
      steps.push({ first, last: first, segment: null });
      first++;
    } else {
      steps.push({ first, last: first + keys.length - 1, segment: yield* segmentOf(keys) });
      first += keys.length;
    }
  }
  return { name, rules, steps, disabled: null };
}

function keyOf({ type, matcher }: Rule): MergeKey | null {
  return type === "SUB-RULE" ? null : mergeKeyOf(matcher); // a table finds rules that decide, not lists to enter
}

/** Null where the table would be another one: a rule of it is, or the run of rules goes on behind it. */
function* stepOfBefore(rules: readonly Rule[], before: RuleList, step: Step | undefined): Steps<Step | null> {
  if (step === undefined || step.segment === null) return null;
  for (let at = step.first; at <= step.last; at++) {
    if (rules[at] !== before.rules[at]) return null;
    if (at % RULES_AT_ONCE === 0) yield;
  }
  const next = rules[step.last + 1];
  const goesOn = next !== undefined && keyOf(next)?.kind === keyOf(itemAt(rules, step.first))?.kind;
  return goesOn ? null : step;
}

/** The keys of the rules from `first` on that fit into one table. */
function* mergeableRun(rules: readonly Rule[], first: number): Steps<readonly MergeKey[]> {
  const keys: MergeKey[] = [];
  for (let at = first; at < rules.length; at++) {
    const key = keyOf(itemAt(rules, at));
    if (key === null || key.kind !== (keys[0] ?? key).kind) break;
    keys.push(key);
    if (at % RULES_AT_ONCE === 0) yield;
  }
  return keys;
}

function* segmentOf(keys: readonly MergeKey[]): Steps<Segment> {
  const names: string[] = [];
  const covers = new Uint8Array(keys.length);
  const cidrs: Cidr[] = [];
  for (const [at, key] of keys.entries()) {
    if (key.kind === "domain") {
      names.push(key.name);
      covers[at] = key.covers;
    } else cidrs.push(key.cidr);
    if (at % RULES_AT_ONCE === 0) yield;
  }
  const { kind } = itemAt(keys, 0);
  if (kind === "domain") return domainSegment(yield* DomainTable.build(names, covers));
  return cidrSegment(kind, yield* CidrTable.build(cidrs));
}

function domainSegment(table: DomainTable): Segment {
  return {
    reads: ["host"],
    find: ({ host }, after, disabled) => {
      if (host === undefined) return UNDECIDED;
      return host === null ? NONE : table.lowest(host, after, disabled);
    },
  };
}

function cidrSegment(side: CidrSide, table: CidrTable): Segment {
  const ofSource = side === "source";
  return {
    reads: [ofSource ? "sourceIp" : "ip"],
    find: (facts, after, disabled) => {
      const address = ofSource ? facts.sourceIp : facts.ip;
      if (address === undefined) return side === "known-ip" ? NONE : UNDECIDED;
      return address === null ? NONE : table.lowest(address, after, disabled);
    },
  };
}
