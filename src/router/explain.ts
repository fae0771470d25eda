/** Why a destination goes where it goes: which rule decided, and why the ones before it did not. */
import type { Decision } from "#core/router.ts";
import type { FactName, Facts, Rule } from "#core/rule.ts";
import { destinationText } from "#core/session.ts";
import type { Destination, InboundInfo, Ip, Metadata, Network } from "#core/session.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import type { RuleList } from "./compile.ts";
import type { PassReason } from "./decision.ts";
import type { RuleRouter, TraceObserver } from "./rule-router.ts";
import { itemAt } from "#lib/at.ts";

export interface Question {
  readonly destination: Destination;
  readonly source?: Ip;
  readonly network?: Network;
  /** What listener the session shall seem to come in by. */
  readonly inbound?: Partial<InboundInfo>;
}

/** Consecutive rules of one list and one target that share their fate. Positions count from 0 in the list. */
export interface ExplainedRules {
  readonly kind: "missed" | "disabled" | "passed";
  readonly list: string;
  readonly first: number;
  readonly last: number;
  readonly target: string;
  /** API names that occur, each once. */
  readonly types: readonly string[];
  /** The first few. */
  readonly examples: readonly Rule[];
  /** What the rules looked at (`host example.org`), or why the target was passed over. */
  readonly why: string;
}

/** Something else that happened on the way: a look-up, a sub-rule list entered or left. */
export interface ExplainedNote {
  readonly kind: "note";
  readonly text: string;
}

export interface Explanation {
  readonly question: string;
  readonly entries: readonly (ExplainedRules | ExplainedNote)[];
  /** Entries left out because there were too many. */
  readonly omitted: number;
  readonly decision: Decision;
}

const ENTRY_LIMIT = 200;
const EXAMPLES = 4;

/** Looks up what rules need, as a session would, and dials nothing. */
export async function explain(
  router: RuleRouter,
  question: Question,
  signal: AbortSignal,
): Promise<Explanation> {
  const { destination, source = LOOPBACK_V4, network = "tcp", inbound = {} } = question;
  const metadata: Metadata = {
    id: "explain",
    network,
    source: { ip: source, port: 0 },
    destination,
    inbound: {
      name: "explain",
      type: "Inner",
      user: null,
      local: { ip: LOOPBACK_V4, port: 0 },
      ruleList: null,
      target: null,
      ...inbound,
    },
    dscp: null,
    acceptedAtMs: 0,
  };
  const collector = new Collector();
  const decision = await router.trace(metadata, signal, collector);
  return {
    question: `${destinationText(destination)} ${network} from ${source}`,
    entries: collector.entries,
    omitted: collector.omitted,
    decision,
  };
}

class Collector implements TraceObserver {
  readonly entries: (ExplainedRules | ExplainedNote)[] = [];
  omitted = 0;

  missed(list: RuleList, first: number, last: number, facts: Facts): void {
    const lack = (at: number) => list.rules[at]?.matcher.unavailable ?? null;
    for (let from = first; from <= last;) {
      const why = lack(from);
      let to = from;
      while (to < last && lack(to + 1) === why) to++;
      this.#rules("missed", list, from, to, why ?? seen(itemAt(list.rules, from), facts));
      from = to + 1;
    }
  }

  disabled(list: RuleList, position: number): void {
    this.#rules("disabled", list, position, position, "switched off");
  }

  passed(list: RuleList, position: number, reason: PassReason): void {
    const { target } = itemAt(list.rules, position);
    this.#rules("passed", list, position, position, PASS_TEXT[reason](target));
  }

  entered(list: RuleList, position: number): void {
    const { payload, target } = itemAt(list.rules, position);
    this.#note(`the condition ${payload} holds: sub-rule ${target}`);
  }

  left(list: RuleList): void {
    this.#note(`sub-rule ${list.name} does not decide`);
  }

  looked(name: FactName, facts: Facts): void {
    this.#note(`the next rule needs the ${LABELS[name]}: ${valueText(name, facts)}`);
  }

  #note(text: string): void {
    this.#push({ kind: "note", text });
  }

  #rules(kind: ExplainedRules["kind"], list: RuleList, first: number, last: number, why: string): void {
    for (let from = first; from <= last;) {
      const { target } = itemAt(list.rules, from);
      let to = from;
      while (to < last && list.rules[to + 1]?.target === target) to++;
      this.#alike(kind, list, from, to, why);
      from = to + 1;
    }
  }

  /** Of rules with one target. */
  #alike(kind: ExplainedRules["kind"], list: RuleList, first: number, last: number, why: string): void {
    const rules = list.rules.slice(first, last + 1);
    const { target } = itemAt(rules, 0);
    const types = [...new Set(rules.map(({ apiType }) => apiType))];
    const before = this.entries.at(-1);
    // Neighbours of one kind become one entry, so that a long list stays a short text.
    const joins =
      before !== undefined &&
      before.kind === kind &&
      before.list === list.name &&
      before.last + 1 === first &&
      before.why === why &&
      before.target === target &&
      types.every((type) => before.types.includes(type));
    if (!joins) {
      const examples = rules.slice(0, EXAMPLES);
      this.#push({ kind, list: list.name, first, last, target, types, examples, why });
      return;
    }
    const examples = [...before.examples, ...rules].slice(0, EXAMPLES);
    this.entries[this.entries.length - 1] = { ...before, last, examples };
  }

  #push(entry: ExplainedRules | ExplainedNote): void {
    if (this.entries.length < ENTRY_LIMIT) this.entries.push(entry);
    else this.omitted++;
  }
}

const PASS_TEXT: Readonly<Record<PassReason, (target: string) => string>> = {
  rule: (target) => `${target} passes to the next rule of the main list`,
  line: (target) => `${target} passes to the next line`,
  udp: (target) => `${target} carries no UDP`,
};

const LABELS: Readonly<Record<FactName, string>> = {
  network: "network",
  host: "host",
  ip: "address",
  port: "port",
  sourceIp: "source",
  sourceMac: "hardware address",
  sourcePort: "source port",
  inboundName: "listener",
  inboundType: "inbound type",
  inboundPort: "listener's port",
  inboundUser: "user",
  dscp: "DSCP",
  process: "process",
  uid: "user id",
};

function seen({ matcher }: Rule, facts: Facts): string {
  return matcher.reads.map((name) => `${LABELS[name]} ${valueText(name, facts)}`).join(", ");
}

function valueText(name: FactName, facts: Facts): string {
  const value = facts[name];
  if (value === undefined) return "not looked up";
  if (value === null) return "unknown";
  return typeof value === "object" ? (value.path ?? `of user ${value.uid}`) : String(value);
}

/** For a terminal: one line an entry, the decision last. */
export function renderExplanation({ question, entries, omitted, decision }: Explanation): string {
  const lines = [question, ...entries.flatMap((entry) => entryLines(entry).map((line) => `  ${line}`))];
  if (omitted > 0) lines.push(`  … ${omitted.toLocaleString("en")} more steps without a match`);
  const { rule, chain } = decision;
  const why = rule === null ? "no rule decides" : `${ruleText(rule)} matches`;
  return [...lines, `${why}: ${chain.join(" > ")}`].join("\n");
}

function entryLines(entry: ExplainedRules | ExplainedNote): readonly string[] {
  if (entry.kind === "note") return [entry.text];
  const { list, first, last, types, examples, why, kind } = entry;
  const count = last - first + 1;
  const place = list === "rules" ? "" : `${list} `;
  const because = why === "" ? "" : ` (${why})`;
  const verdict = kind === "missed" ? "no" : kind === "disabled" ? "disabled" : "matches, but goes on";
  if (count <= EXAMPLES)
    return examples.map((rule, at) => `${place}rule ${first + at} ${ruleText(rule)}: ${verdict}${because}`);
  const many = `${count.toLocaleString("en")} ${types.join(", ")} rules`;
  const text = kind === "missed" ? `none of ${many} matches` : `${many} ${verdict}`;
  return [`${place}rules ${first}–${last}: ${text}${because}`];
}

function ruleText({ apiType, payload, target }: Rule): string {
  const shown = payload.length > 80 ? `${payload.slice(0, 77)}...` : payload;
  return shown === "" ? `${apiType} → ${target}` : `${apiType} ${shown} → ${target}`;
}
