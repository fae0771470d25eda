/** Decides where a session goes: mode, listener's target, rules, with what has to be found out on the way. */
import { ConfigError, DialError } from "#core/errors.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Decision } from "#core/router.ts";
import type { Facts, Matcher, Rule } from "#core/rule.ts";
import type { InboundInfo, Metadata } from "#core/session.ts";
import type { Sniffed } from "#core/sniffer.ts";
import type { Steps } from "#lib/steps.ts";
import { int32At, itemAt, valueAt } from "#lib/at.ts";
import { checkLists } from "./check-lists.ts";
import { compileInSteps } from "./compile.ts";
import type { RuleList, RuleListsInForce } from "./compile.ts";
import { decisionOf, passReason, unruled } from "./decision.ts";
import { DirectProof } from "./direct-proof.ts";
import type { DirectQuestion, Proof } from "./direct-proof.ts";
import { discover } from "./fact-lookup.ts";
import { RuleCounters } from "./rule-counters.ts";
import type { RouterEnv, RuleRouter, RuleView, TraceObserver } from "./rule-router.ts";
import { factsOf } from "./session-facts.ts";
import type { Prepared } from "./session-facts.ts";
import { RouterSnapshot } from "./snapshot.ts";
import { leadToList } from "./tables/rule-table.ts";
import { Walk } from "./tables/walk.ts";

interface Way {
  readonly walk: Walk<RuleList>;
  /** Null: nothing is counted. */
  readonly counters: RuleCounters | null;
  readonly observer: TraceObserver | null;
  readonly metadata: Metadata;
  readonly prepared: Prepared;
  /** What was known before. */
  readonly facts: Facts;
}

/** Throws `ConfigError` where a rule names a target or a list that does not exist, or lists lead in a circle. */
export function* openRouterInSteps(env: RouterEnv): Steps<RuleRouter> {
  yield* checkLists(env.rules, env.subRules);
  const { before = null, ...rest } = env; // the router does not keep the one before
  const numbers = new Map([...env.subRules.keys()].map((name, at) => [name, at]));
  const targets = new TargetNumbers(env);
  const compile = function* (name: string, rules: readonly Rule[], last?: RuleList): Steps<RuleList> {
    return yield* compileInSteps(name, rules, last, (rule, at) =>
      rule.type === "SUB-RULE"
        ? leadToList(valueAt(numbers, rule.target))
        : targets.numberOf(rule.target, `${name}[${at}]`),
    );
  };
  const nested: RuleList[] = [];
  for (const [name, rules] of env.subRules)
    nested.push(
      yield* compile(
        name,
        rules,
        before?.nested.find((list) => list.name === name),
      ),
    );
  const main = yield* compile("rules", env.rules, before?.main);
  return new ListRouter(rest, { main, nested }, targets.all);
}

/** What rules lead to, in the order in which it is met. */
class TargetNumbers {
  readonly all: Outbound[] = [];
  readonly #env: RouterEnv;
  readonly #numbers = new Map<string, number>();

  constructor(env: RouterEnv) {
    this.#env = env;
  }

  /** Throws `ConfigError` where there is no such target. */
  numberOf(target: string, where: string): number {
    const known = this.#numbers.get(target);
    if (known !== undefined) return known;
    const outbound = this.#env.outbound(target);
    if (outbound === null)
      throw new ConfigError(`${where}: proxy "${target}" not found: name a proxy, a group or a built-in`);
    this.#numbers.set(target, this.all.length);
    return this.all.push(outbound) - 1;
  }
}

class ListRouter implements RuleRouter {
  revision = 0;
  readonly #env: RouterEnv;
  readonly lists: RuleListsInForce;
  readonly #main: RuleList;
  /** By number, as `leads` of the lists have it. */
  readonly #targets: readonly Outbound[];
  readonly #counters: RuleCounters;

  constructor(env: RouterEnv, lists: RuleListsInForce, targets: readonly Outbound[]) {
    this.#env = env;
    this.lists = lists;
    this.#main = lists.main;
    this.#targets = targets;
    this.#counters = new RuleCounters(this.#main.rules.length);
  }

  route(metadata: Metadata, signal: AbortSignal, sniffed: Sniffed | null = null): Promise<Decision> {
    return this.#start(metadata, signal, sniffed, null);
  }

  trace(metadata: Metadata, signal: AbortSignal, observer: TraceObserver): Promise<Decision> {
    return this.#start(metadata, signal, null, observer);
  }

  decide(metadata: Metadata): Decision | null {
    if (this.#env.findProcessMode === "always") return null;
    const way = this.#enter(metadata, null, null);
    if (!("walk" in way)) return way;
    const { walk, counters } = way;
    const stop = walk.next();
    if (stop === "wants") return null;
    const decision = this.#decisionAt(stop === "match" ? walk : null, way);
    if (stop === "match" && passReason(decision, metadata.network) !== null) return null;
    counters?.run(0, stop === "match" ? walk.position : this.#main.rules.length, this.#env.nowMs());
    return decision;
  }

  snapshot(): RouterSnapshot {
    const { direct, findProcessMode, nowMs } = this.#env;
    return new RouterSnapshot({
      lists: this.lists,
      targets: this.#targets,
      direct,
      fixed: this.#modeTarget(),
      findProcessMode,
      count: (end) => this.#counters.run(0, end, nowMs()),
    });
  }

  async #start(
    metadata: Metadata,
    signal: AbortSignal,
    sniffed: Sniffed | null,
    observer: TraceObserver | null,
  ): Promise<Decision> {
    const way = this.#enter(metadata, sniffed, observer);
    if (this.#env.findProcessMode === "always") {
      const facts = await discover(this.#env, "process", way.facts, metadata, signal);
      if (!("walk" in way)) return { ...way, facts };
      way.walk.facts = facts;
    }
    return "walk" in way ? this.#follow(way, signal) : way;
  }

  /** Decides where no rules are needed; otherwise prepares the walk at the first rule. */
  #enter(metadata: Metadata, sniffed: Sniffed | null, observer: TraceObserver | null): Decision | Way {
    const env = this.#env;
    const prepared = env.prepare?.(metadata, sniffed) ?? metadata;
    const facts = factsOf(metadata, prepared, env.findProcessMode);
    const fixed = this.#fixedTarget(metadata);
    if (fixed !== null)
      return unruled(decisionOf(fixed, metadata, prepared, null, { facts }), metadata.network);
    const root = this.#rootFor(metadata.inbound);
    const walk = new Walk(root, this.lists.nested, facts, observer);
    const counters = root === this.#main && observer === null ? this.#counters : null;
    return { walk, facts, counters, observer, metadata, prepared };
  }

  /** `matched` null: no rule does, and what no rule leads elsewhere goes DIRECT. */
  #decisionAt(matched: Walk<RuleList> | null, { walk, metadata, prepared }: Way): Decision {
    const { facts, records } = walk;
    if (matched === null) return decisionOf(this.#env.direct, metadata, prepared, null, { facts, records });
    const { list, listPosition, position, root, nested } = matched;
    const target = itemAt(this.#targets, int32At(list.leads, listPosition));
    const entered = nested ? itemAt(root.rules, position) : null;
    const rule = itemAt(list.rules, listPosition);
    return decisionOf(target, metadata, prepared, rule, { facts, records, entered });
  }

  async #follow(way: Way, signal: AbortSignal): Promise<Decision> {
    const { walk, counters, observer, metadata } = way;
    for (let first = 0; ;) {
      const stop = walk.next(); // synchronous from one missing fact to the next
      if (stop === "wants") {
        const [name] = walk.wanted;
        if (name === undefined) {
          walk.passOver(); // a matcher that is undecided although it has everything it reads does not match
          continue;
        }
        walk.facts = await discover(this.#env, name, walk.facts, metadata, signal);
        observer?.looked(name, walk.facts);
        continue;
      }
      const decision = this.#decisionAt(stop === "match" ? walk : null, way);
      const reason = stop === "match" ? passReason(decision, metadata.network) : null;
      if (stop === "end" || reason === null) {
        counters?.run(first, stop === "end" ? this.#main.rules.length : walk.position, this.#env.nowMs());
        return decision;
      }
      observer?.passed(walk.list, walk.listPosition, reason);
      if (!walk.nested) {
        counters?.run(first, walk.position, this.#env.nowMs());
        first = walk.position + 1;
      }
      if (reason !== "line") walk.leaveAll();
    }
  }

  /** What needs no rules: the listener's own target, the modes. */
  #fixedTarget({ inbound }: Metadata): Outbound | null {
    if (inbound.target !== null) {
      const target = this.#env.outbound(inbound.target);
      if (target !== null) return target;
      throw new DialError("failed", `listener ${inbound.name}: its proxy "${inbound.target}" does not exist`);
    }
    return this.#modeTarget();
  }

  #modeTarget(): Outbound | null {
    const mode = this.#env.mode();
    if (mode === "rule") return null;
    return mode === "global" ? this.#env.global : this.#env.direct;
  }

  #rootFor(inbound: Pick<InboundInfo, "ruleList">): RuleList {
    const { ruleList } = inbound;
    return (
      (ruleList === null ? undefined : this.lists.nested.find(({ name }) => name === ruleList)) ?? this.#main
    );
  }

  proveDirect({ host, ip, inbound }: DirectQuestion, isDirect: (target: Outbound) => boolean): Proof {
    const fixed = inbound.target === null ? this.#modeTarget() : this.#env.outbound(inbound.target);
    if (fixed !== null) {
      const by = inbound.target === null ? `mode ${this.#env.mode()}` : "the listener's proxy";
      return { direct: isDirect(fixed), reason: `${by} leads to ${fixed.name}` };
    }
    const proof = new DirectProof(this.#targets, isDirect);
    return proof.walk(new Walk(this.#rootFor(inbound), this.lists.nested, { host, ip }));
  }

  disable(changes: ReadonlyMap<number, boolean>): void {
    this.revision++;
    const { rules, disabled } = this.#main;
    this.#counters.settle(disabled);
    const next = disabled === null ? new Uint8Array(rules.length) : Uint8Array.from(disabled);
    for (const [at, off] of changes) if (at >= 0 && at < rules.length) next[at] = off ? 1 : 0;
    this.#main.disabled = next.includes(1) ? next : null;
  }

  *views(): Iterable<RuleView> {
    const { rules, disabled } = this.#main;
    this.#counters.settle(disabled);
    for (const [at, rule] of rules.entries())
      yield {
        rule,
        size: sizeOf(rule.matcher),
        disabled: disabled?.[at] === 1,
        unavailable: rule.matcher.unavailable ?? null,
        ...this.#counters.read(at),
      };
  }
}

/** How many entries the data of a matcher has; -1 where it has none. */
function sizeOf(matcher: Matcher): number {
  return "size" in matcher && typeof matcher.size === "number" ? matcher.size : -1;
}
