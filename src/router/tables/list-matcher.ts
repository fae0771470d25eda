/** A list of names, networks or conditions as a rule with options asks it. */
import type { Condition, ConditionOf } from "#core/condition.ts";
import type { AddressRecords, FactName, Facts, Matcher, ReadRecords } from "#core/rule.ts";
import { conditionOf } from "./joined.ts";

export type ListOptions = Pick<ConditionOf<"list">, "noResolve" | "source" | "negated">;

/** `reads` is asked for every time: another version of the list may need other facts. */
export function listMatcher(list: Matcher, { noResolve, source, negated }: ListOptions): Matcher {
  const verdict = (facts: Facts) => {
    const answer = list.match(facts);
    return negated && answer !== undefined ? !answer : answer;
  };
  const lacksAddress = (facts: Facts) => noResolve && list.reads.includes("ip") && facts.ip === undefined;
  return {
    get reads() {
      return source ? [...new Set(list.reads.flatMap((name) => SOURCE_OF[name] ?? [name]))] : list.reads;
    },
    get unavailable() {
      return list.unavailable ?? null;
    },
    match: (facts) => {
      if (source) return verdict(sourceView(facts, list.reads));
      return verdict(lacksAddress(facts) ? { ...pick(facts, list.reads), ip: null } : facts);
    },
    records: source ? recordsOfSource(list) : list.records?.bind(list),
    get condition(): Condition {
      return { is: "list", list: conditionOf(list), noResolve, source, negated };
    },
  };
}

/** What `src` reads instead of the destination's facts; a source has no name. */
const SOURCE_OF: Partial<Record<FactName, readonly FactName[]>> = {
  host: [],
  ip: ["sourceIp"],
  port: ["sourcePort"],
};

function sourceView(facts: Facts, reads: readonly FactName[]): Facts {
  const others = reads.filter((name) => SOURCE_OF[name] === undefined);
  return {
    ...pick(facts, others),
    host: null,
    ...(reads.includes("ip") ? pickAs(facts.sourceIp, "ip") : {}),
    ...(reads.includes("port") ? pickAs(facts.sourcePort, "port") : {}),
  };
}

/** A source is looked up as if it were the destination. */
function recordsOfSource(list: Matcher): ReadRecords | undefined {
  if (list.records === undefined) return undefined;
  return (facts, known) => exchanged(list.records?.(sourceView(facts, list.reads), exchanged(known)) ?? null);
}

function exchanged(records: AddressRecords | null): AddressRecords | null {
  if (records === null) return null;
  return {
    sourceCodes: records.destinationCodes,
    destinationCodes: records.sourceCodes,
    sourceSystem: records.destinationSystem,
    destinationSystem: records.sourceSystem,
  };
}

function pickAs(value: unknown, name: FactName): Facts {
  return value === undefined ? {} : { [name]: value };
}

function pick(facts: Facts, names: readonly FactName[]): Facts {
  return Object.assign({}, ...names.map((name) => pickAs(facts[name], name)));
}
