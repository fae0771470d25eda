/** A rule list as every thread has it: what its rules ask, and where each of them leads. */
import { partsOf, type Condition } from "#core/condition.ts";
import type { Matcher } from "#core/rule.ts";
import { conditionOf } from "./joined.ts";
import { openCondition } from "./open-condition.ts";
import { openSegment, type Segment, type SegmentTable } from "./segment.ts";

/** Positions in the list. */
interface StepRange {
  readonly first: number;
  readonly last: number;
}

/** Consecutive rules that share a table, or a single rule. */
export type Step =
  | (StepRange & { readonly segment: Segment })
  | (StepRange & {
      readonly segment: null;
      readonly matcher: Matcher;
      /** A part of it only the thread that parsed it can tell. */
      readonly isPartlyUnknown?: boolean;
    });

export interface RuleTable {
  /** `rules`, or the name of a sub-rule list. */
  readonly name: string;
  readonly steps: readonly Step[];
  /** By position: the number of the rule's target; negative: see `listOf`. In shared memory. */
  readonly leads: Int32Array;
  /** 1 where the rule is switched off; null while none is. */
  disabled: Uint8Array | null;
}

/** How a SUB-RULE leads to a list. */
export const leadToList = (list: number): number => -1 - list;

/** The number of the list that a SUB-RULE leads to; negative: it is a rule with a target. */
export const listOf = (lead: number): number => -1 - lead;

/** A rule list on its way to another thread. Its arrays are shared; what is copied is small. */
export interface RuleTableData extends Pick<RuleTable, "name" | "leads" | "disabled"> {
  readonly steps: readonly (StepRange & { readonly table: SegmentTable | null; readonly rule: Condition })[];
}

/** With the contents that lists and databases have now. */
export function dataOfTable({ name, steps, leads, disabled }: RuleTable): RuleTableData {
  const data = steps.map((step) => {
    const { first, last } = step;
    return step.segment === null
      ? { first, last, table: null, rule: conditionOf(step.matcher) }
      : { first, last, table: step.segment.table, rule: step.segment.table };
  });
  return { name, steps: data, leads, disabled: disabled?.slice() ?? null };
}

function isPartlyUnknown(condition: Condition): boolean {
  return condition.is === "unknown" || partsOf(condition).some(isPartlyUnknown);
}

export function openTable({ name, steps, leads, disabled }: RuleTableData): RuleTable {
  const opened = steps.map(({ first, last, table, rule }): Step =>
    table === null
      ? { first, last, segment: null, matcher: openCondition(rule), isPartlyUnknown: isPartlyUnknown(rule) }
      : { first, last, segment: openSegment(table) },
  );
  return { name, steps: opened, leads, disabled };
}
