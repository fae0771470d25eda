/** A rule list made ready for matching: consecutive rules that can share a table are one step, the others one each. */
import type { ConditionOf } from "#core/condition.ts";
import type { Rule } from "#core/rule.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { DomainTable } from "#lib/domain-table.ts";
import { sharedInt32 } from "#lib/shared-arrays.ts";
import type { Steps } from "#lib/steps.ts";
import { itemAt } from "#lib/at.ts";
import type { RuleTable, Step } from "./tables/rule-table.ts";
import { openSegment, type SegmentTable } from "./tables/segment.ts";

/** Fewer rules than this are as fast one by one. */
const SMALLEST_SEGMENT = 6;

/** How many rules a long work looks at before it may pause. */
export const RULES_AT_ONCE = 256;

/** A table of the main thread, with the rules themselves. */
export interface RuleList extends RuleTable {
  readonly rules: readonly Rule[];
}

/** All lists of a router, ready for matching. */
export interface RuleListsInForce {
  readonly main: RuleList;
  /** Those of `sub-rules`, in the order by which rules lead to them. */
  readonly nested: readonly RuleList[];
}

/** What `leads` of a table has for a rule. */
type LeadOf = (rule: Rule, position: number) => number;

const leadsNowhere: LeadOf = () => 0;

/** `before`: a list whose tables are taken where they are over the same rules. */
export function* compileInSteps(
  name: string,
  rules: readonly Rule[],
  before?: RuleList,
  leadOf: LeadOf = leadsNowhere,
): Steps<RuleList> {
  const leads = sharedInt32(rules.length);
  for (const [at, rule] of rules.entries()) {
    leads[at] = leadOf(rule, at);
    if (at % RULES_AT_ONCE === 0) yield;
  }
  return { name, rules, steps: yield* stepsOf(rules, before), leads, disabled: null };
}

export function* stepsOf(rules: readonly Rule[], before?: RuleList): Steps<readonly Step[]> {
  const steps: Step[] = [];
  const known = new Map(before?.steps.map((step) => [step.first, step]));
  for (let first = 0; first < rules.length;) {
    const same = before === undefined ? null : yield* stepOfBefore(rules, before, known.get(first));
    if (same !== null) {
      steps.push(same);
      first = same.last + 1;
      continue;
    }
    const conditions = yield* mergeableRun(rules, first);
    if (conditions.length < SMALLEST_SEGMENT) {
      steps.push({ first, last: first, segment: null, matcher: itemAt(rules, first).matcher });
      first++;
    } else {
      const segment = openSegment(yield* tableOf(conditions));
      steps.push({ first, last: first + conditions.length - 1, segment });
      first += conditions.length;
    }
  }
  return steps;
}

/** One name or one network: such rules can share a table. */
type Mergeable = ConditionOf<"name"> | ConditionOf<"network">;

/** Null: the rule needs a step of its own. A table finds rules that decide, not lists to enter. */
export function mergeableOf({ type, matcher: { condition } }: Rule): Mergeable | null {
  if (type === "SUB-RULE" || condition === undefined) return null;
  return condition.is === "name" || condition.is === "network" ? condition : null;
}

function shareTable(one: Mergeable, other: Mergeable): boolean {
  if (one.is === "name" || other.is === "name") return one.is === other.is;
  return one.side === other.side;
}

/** Null where the table would be another one: a rule of it is, or the run of rules goes on behind it. */
function* stepOfBefore(rules: readonly Rule[], before: RuleList, step: Step | undefined): Steps<Step | null> {
  if (step === undefined || step.segment === null) return null;
  for (let at = step.first; at <= step.last; at++) {
    if (rules[at] !== before.rules[at]) return null;
    if (at % RULES_AT_ONCE === 0) yield;
  }
  const next = rules[step.last + 1];
  const behind = next === undefined ? null : mergeableOf(next);
  const first = mergeableOf(itemAt(rules, step.first));
  return behind !== null && first !== null && shareTable(first, behind) ? null : step;
}

/** The conditions of the rules from `first` on that fit into one table. */
function* mergeableRun(rules: readonly Rule[], first: number): Steps<readonly Mergeable[]> {
  const run: Mergeable[] = [];
  for (let at = first; at < rules.length; at++) {
    const condition = mergeableOf(itemAt(rules, at));
    if (condition === null || !shareTable(run[0] ?? condition, condition)) break;
    run.push(condition);
    if (at % RULES_AT_ONCE === 0) yield;
  }
  return run;
}

function* tableOf(run: readonly Mergeable[]): Steps<SegmentTable> {
  const names: string[] = [];
  const covers = new Uint8Array(run.length);
  const cidrs: Cidr[] = [];
  for (const [at, condition] of run.entries()) {
    if (condition.is === "name") {
      names.push(condition.name);
      covers[at] = condition.covers;
    } else cidrs.push(condition);
    if (at % RULES_AT_ONCE === 0) yield;
  }
  const first = itemAt(run, 0);
  if (first.is === "name") return { is: "names", table: (yield* DomainTable.build(names, covers)).parts };
  return { is: "networks", side: first.side, table: (yield* CidrTable.build(cidrs)).parts };
}
