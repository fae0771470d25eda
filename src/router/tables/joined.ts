/** Matchers made of others, by Kleene's tables: AND, OR, NOT, and lists of which one item is enough. */
import { UNKNOWN, type Condition } from "#core/condition.ts";
import type { FactName, Facts, Matcher, ReadRecords } from "#core/rule.ts";

export function and(parts: readonly Matcher[]): Matcher {
  return inOrder(parts, false, () => ({ is: "and", parts: parts.map(conditionOf) }));
}

export function or(parts: readonly Matcher[]): Matcher {
  return inOrder(parts, true, () => ({ is: "or", parts: parts.map(conditionOf) }));
}

/** One item is enough, and no fact is looked up for the order of the items. `reads`: those of all. */
export function anyOf(parts: readonly Matcher[], reads: readonly FactName[] = readsOf(parts)): Matcher {
  return {
    reads,
    match: matchOf(parts, true),
    records: recordsOf(parts, true),
    get condition(): Condition {
      return { is: "any", parts: parts.map(conditionOf) };
    },
  };
}

export function not(part: Matcher): Matcher {
  return {
    get reads() {
      return part.reads;
    },
    match: (facts) => {
      const verdict = part.match(facts);
      return verdict === undefined ? undefined : !verdict;
    },
    firstMissing: (facts) => firstMissing(part, facts),
    records: part.records,
    get condition(): Condition {
      return { is: "not", part: conditionOf(part) };
    },
  };
}

/** For other threads. */
export function conditionOf(matcher: Matcher): Condition {
  return matcher.condition ?? UNKNOWN;
}

function inOrder(parts: readonly Matcher[], decisive: boolean, condition: () => Condition): Matcher {
  return {
    get reads() {
      return readsOf(parts);
    },
    match: matchOf(parts, decisive),
    firstMissing(facts) {
      for (const part of parts) {
        const missing = firstMissing(part, facts);
        if (missing !== null) return missing;
        if (part.match(facts) === decisive) return null;
      }
      return null;
    },
    records: recordsOf(parts, decisive),
    get condition() {
      return condition();
    },
  };
}

function firstMissing(part: Matcher, facts: Facts): FactName | null {
  if (part.firstMissing !== undefined) return part.firstMissing(facts);
  if (part.match(facts) !== undefined) return null;
  return part.reads.find((name) => facts[name] === undefined) ?? null;
}

/** The facts of all parts, each once, in the order in which the parts want them. */
function readsOf(parts: readonly Matcher[]): Matcher["reads"] {
  return [...new Set(parts.flatMap((part) => part.reads))];
}

/** One part with the `decisive` answer decides; otherwise one undecided part leaves the result undecided. */
function matchOf(parts: readonly Matcher[], decisive: boolean): Matcher["match"] {
  return (facts) => {
    let open = false;
    for (const part of parts) {
      const verdict = part.match(facts);
      if (verdict === decisive) return decisive;
      if (verdict === undefined) open = true;
    }
    return open ? undefined : !decisive;
  };
}

/** Of the parts from left to right, down to the one that decides. */
function recordsOf(parts: readonly Matcher[], decisive: boolean): ReadRecords | undefined {
  if (!parts.some((part) => part.records !== undefined)) return undefined;
  return (facts, known) => {
    let found = known;
    for (const part of parts) {
      if (part.records !== undefined) found = part.records(facts, found);
      if (part.match(facts) === decisive) break;
    }
    return found;
  };
}
