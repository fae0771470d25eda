/** Tries a rule list in order, synchronously, from one missing fact to the next. */
import type { AddressRecords, Facts, FactName, Matcher } from "#core/rule.ts";
import { int32At, itemAt } from "#lib/at.ts";
import { UNDECIDED, type Segment } from "./segment.ts";
import { listOf, type RuleTable, type Step } from "./rule-table.ts";

/** Reports the rules that did not match. Used by `explain` only. */
export interface Observer<List> {
  /** The rules `first` to `last` of the list were tried and said no. */
  missed(list: List, first: number, last: number, facts: Facts): void;
  disabled(list: List, position: number): void;
  /** The condition of a SUB-RULE holds, or the list that it led to had no match. */
  entered(list: List, position: number): void;
  left(list: List): void;
}

interface Frame<List> {
  readonly list: List;
  step: number;
  /** Position of the last rule that matched in the present segment, -1 before. */
  after: number;
  readonly parent: Frame<List> | null;
}

/**
 * `match`: see `listPosition`. `wants`: see `wanted`; set `facts` and continue. `end`: no further rule can match.
 */
export type Stop = "match" | "wants" | "end";

const NO_FACTS: readonly FactName[] = [];

/** One session's walk through the rules. `next` continues behind the rule that matched last. */
export class Walk<List extends RuleTable = RuleTable> {
  facts: Facts;
  /** What the rules that were tried looked up in databases; null: nothing. */
  records: AddressRecords | null = null;
  /** The position of the rule that matched in `list`. */
  listPosition = 0;
  /** Where in the root list it is: at that rule, or at the SUB-RULE that led to it. */
  position = 0;
  /** The fact to look up; empty: only another thread can tell. */
  wanted: readonly FactName[] = NO_FACTS;
  readonly #lists: readonly List[];
  readonly #observer: Observer<List> | null;
  #frame: Frame<List>;

  /** `lists`: those that the rules of SUB-RULE lead to, by number. */
  constructor(root: List, lists: readonly List[], facts: Facts, observer: Observer<List> | null = null) {
    this.facts = facts;
    this.#lists = lists;
    this.#observer = observer;
    this.#frame = { list: root, step: 0, after: -1, parent: null };
  }

  /** The list it is in. */
  get list(): List {
    return this.#frame.list;
  }

  /** The list that it began with. */
  get root(): List {
    let frame = this.#frame;
    while (frame.parent !== null) frame = frame.parent;
    return frame.list;
  }

  /** Is it inside a sub-rule list? */
  get nested(): boolean {
    return this.#frame.parent !== null;
  }

  /** After `wants`: the rule can be told by another thread only, at least in part. */
  get isPartlyUnknown(): boolean {
    const { list, step } = this.#frame;
    const at = list.steps[step];
    return at?.segment === null && at.isPartlyUnknown === true;
  }

  next(): Stop {
    for (;;) {
      const frame = this.#frame;
      const step = frame.list.steps[frame.step];
      if (step === undefined) {
        if (!this.#leave()) return "end";
        continue;
      }
      const { segment } = step;
      const stop =
        segment === null
          ? this.#tryRule(frame, step.first, step.matcher)
          : this.#trySegment(frame, step, segment);
      if (stop !== null) return stop;
    }
  }

  /** After `wants`: positions of the undecided rules in `list`. More than one when they share a table. */
  get pending(): readonly number[] {
    const { list, step, after } = this.#frame;
    const { first, last } = itemAt(list.steps, step);
    const from = first + after + 1;
    return Array.from({ length: last + 1 - from }, (_, at) => from + at).filter(
      (position) => list.disabled?.[position] !== 1,
    );
  }

  /** After `wants`: continues as if those rules had not matched. */
  passOver(): void {
    this.#frame.step++;
    this.#frame.after = -1;
  }

  /** Continues behind the rule of the root list that led into the present sub-rule. */
  leaveAll(): void {
    while (this.#leave());
  }

  /** Leaves the sub-rule list it is in; false: it is in none. */
  #leave(): boolean {
    const { list, parent } = this.#frame;
    if (parent === null) return false;
    this.#observer?.left(list);
    this.#frame = parent;
    return true;
  }

  #tryRule(frame: Frame<List>, at: number, matcher: Matcher): Stop | null {
    const { list } = frame;
    if (list.disabled?.[at] === 1) {
      this.#observer?.disabled(list, at);
      frame.step++;
      return null;
    }
    if (this.#wantsInOrder(matcher)) return "wants";
    const verdict = matcher.match(this.facts);
    if (verdict === undefined) return this.#want(matcher.reads);
    if (matcher.records !== undefined) this.records = matcher.records(this.facts, this.records);
    frame.step++;
    if (!verdict) {
      this.#observer?.missed(list, at, at, this.facts);
      return null;
    }
    this.listPosition = at;
    if (frame.parent === null) this.position = at;
    const inner = listOf(int32At(list.leads, at));
    if (inner < 0) return "match";
    this.#observer?.entered(list, at);
    this.#frame = { list: itemAt(this.#lists, inner), step: 0, after: -1, parent: frame };
    return null;
  }

  #trySegment(frame: Frame<List>, step: Step, segment: Segment): Stop | null {
    const { list, after } = frame;
    const from = step.first + after + 1;
    const disabled = list.disabled?.subarray(step.first, step.last + 1) ?? null;
    const allDisabled = disabled !== null && !disabled.subarray(after + 1).includes(0);
    const found = allDisabled ? -1 : segment.find(this.facts, after, disabled);
    if (found === UNDECIDED) return this.#want(segment.reads);
    if (found < 0) {
      if (this.#observer !== null && from <= step.last) this.#reportMissed(list, from, step.last);
      frame.step++;
      frame.after = -1;
      return null;
    }
    if (this.#observer !== null && after + 1 < found) this.#reportMissed(list, from, step.first + found - 1);
    this.listPosition = step.first + found;
    if (frame.parent === null) this.position = this.listPosition;
    frame.after = found;
    return "match";
  }

  /**
   * Joined conditions look the address up where the one from left to right that needs it is reached, even where another
   * one would decide without it: later `no-resolve` rules then know it, as in the reference.
   */
  #wantsInOrder(matcher: Matcher): boolean {
    if (this.facts.ip !== undefined || matcher.firstMissing === undefined) return false;
    const missing = matcher.firstMissing(this.facts);
    if (missing === null || (missing !== "ip" && !matcher.reads.includes("ip"))) return false;
    this.wanted = [missing];
    return true;
  }

  /** Asks for the first missing fact only: it may decide, and then the others need not be looked for. */
  #want(reads: readonly FactName[]): Stop {
    const missing = reads.find((name) => this.facts[name] === undefined);
    this.wanted = missing === undefined ? NO_FACTS : [missing];
    return "wants";
  }

  /** Runs of disabled rules and of rules that said no, in order. */
  #reportMissed(list: List, first: number, last: number): void {
    let start = first;
    for (let at = first; list.disabled !== null && at <= last; at++) {
      if (list.disabled[at] !== 1) continue;
      if (start < at) this.#observer?.missed(list, start, at - 1, this.facts);
      this.#observer?.disabled(list, at);
      start = at + 1;
    }
    if (start <= last) this.#observer?.missed(list, start, last, this.facts);
  }
}
