/** Tries a rule list in order, synchronously, from one missing fact to the next. */
import type { AddressRecords, Facts, FactName, Matcher, Rule } from "#core/rule.ts";
import { itemAt } from "#lib/at.ts";
import { UNDECIDED } from "./compile.ts";
import type { RuleList, Step } from "./compile.ts";

/** Reports the rules that did not match. Used by `explain` only. */
export interface Observer {
  /** The rules `first` to `last` of the list were tried and said no. */
  missed(list: RuleList, first: number, last: number, facts: Facts): void;
  disabled(list: RuleList, position: number): void;
  /** The condition of a SUB-RULE holds, or the list that it led to had no match. */
  entered(rule: Rule): void;
  left(list: RuleList): void;
}

interface Frame {
  readonly list: RuleList;
  step: number;
  /** Position of the last rule that matched in the present segment, -1 before. */
  after: number;
  readonly parent: Frame | null;
}

/** `match`: see `rule`. `wants`: see `wanted`; set `facts` and continue. `end`: no further rule can match. */
export type Stop = "match" | "wants" | "end";

const NO_FACTS: readonly FactName[] = [];

/** One session's walk through the rules. `next` continues behind the rule that matched last. */
export class Walk {
  facts: Facts;
  rule: Rule | null = null;
  /** What the rules that were tried looked up in databases; null: nothing. */
  records: AddressRecords | null = null;
  /** The position of the rule in `list`. */
  listPosition = 0;
  /** Where in the root list it is: at `rule`, or at the SUB-RULE that led to it. */
  position = 0;
  wanted: readonly FactName[] = NO_FACTS;
  readonly #lists: ReadonlyMap<string, RuleList>;
  readonly #observer: Observer | null;
  #frame: Frame;

  constructor(
    root: RuleList,
    lists: ReadonlyMap<string, RuleList>,
    facts: Facts,
    observer: Observer | null = null,
  ) {
    this.facts = facts;
    this.#lists = lists;
    this.#observer = observer;
    this.#frame = { list: root, step: 0, after: -1, parent: null };
  }

  /** The list it is in. */
  get list(): RuleList {
    return this.#frame.list;
  }

  /** The SUB-RULE of the root list that led to where it is; null: it is in that list itself. */
  get entered(): Rule | null {
    let frame = this.#frame;
    if (frame.parent === null) return null;
    while (frame.parent !== null) frame = frame.parent;
    return frame.list.rules[this.position] ?? null;
  }

  /** Is it inside a sub-rule list? */
  get nested(): boolean {
    return this.#frame.parent !== null;
  }

  next(): Stop {
    for (;;) {
      const frame = this.#frame;
      const step = frame.list.steps[frame.step];
      if (step === undefined) {
        if (!this.#leave()) return "end";
        continue;
      }
      const stop =
        step.segment === null ? this.#tryRule(frame, step) : this.#trySegment(frame, step, step.segment);
      if (stop !== null) return stop;
    }
  }

  /** After `match`: the rule; throws where none has matched. */
  get matched(): Rule {
    if (this.rule === null) throw new Error("a walk is asked for its rule before one has matched");
    return this.rule;
  }

  /** After `wants`: the undecided rules. More than one when they share a table. */
  get pending(): readonly Rule[] {
    const { list, step, after } = this.#frame;
    const { first, last } = itemAt(list.steps, step);
    return list.rules
      .slice(first + after + 1, last + 1)
      .filter((_, at) => list.disabled?.[first + after + 1 + at] !== 1);
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

  #tryRule(frame: Frame, step: Step): Stop | null {
    const { list } = frame;
    const rule = ruleAt(list.rules, step.first);
    if (list.disabled?.[step.first] === 1) {
      this.#observer?.disabled(list, step.first);
      frame.step++;
      return null;
    }
    if (this.#wantsInOrder(rule.matcher)) return "wants";
    const verdict = rule.matcher.match(this.facts);
    if (verdict === undefined && this.#wants(rule.matcher.reads)) return "wants";
    if (rule.matcher.records !== undefined) this.records = rule.matcher.records(this.facts, this.records);
    frame.step++;
    if (verdict !== true) {
      this.#observer?.missed(list, step.first, step.first, this.facts);
      return null;
    }
    this.listPosition = step.first;
    if (frame.parent === null) this.position = step.first;
    const inner = rule.type === "SUB-RULE" ? this.#lists.get(rule.target) : undefined;
    if (inner === undefined) {
      this.rule = rule;
      return "match";
    }
    this.#observer?.entered(rule);
    this.#frame = { list: inner, step: 0, after: -1, parent: frame };
    return null;
  }

  #trySegment(frame: Frame, step: Step, segment: NonNullable<Step["segment"]>): Stop | null {
    const { list, after } = frame;
    const from = step.first + after + 1;
    const disabled = list.disabled?.subarray(step.first, step.last + 1) ?? null;
    const allDisabled = disabled !== null && !disabled.subarray(after + 1).includes(0);
    const found = allDisabled ? -1 : segment.find(this.facts, after, disabled);
    if (found === UNDECIDED && this.#wants(segment.reads)) return "wants";
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
    this.rule = ruleAt(list.rules, step.first + found);
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
  #wants(reads: readonly FactName[]): boolean {
    const missing = reads.find((name) => this.facts[name] === undefined);
    if (missing === undefined) return false; // a matcher that is undecided although it has everything it reads does not match
    this.wanted = [missing];
    return true;
  }

  /** Runs of disabled rules and of rules that said no, in order. */
  #reportMissed(list: RuleList, first: number, last: number): void {
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

/** A read of its own, because it runs for every rule that is tried; see `lib/at.ts`. */
function ruleAt(rules: readonly Rule[], at: number): Rule {
  return rules[at] as Rule;
}
