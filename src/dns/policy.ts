/** Conditions on names, compiled: nameserver policies, fallback domains, fake-IP filters. */
import type { DomainCondition, FakeIpRule, PolicyOptions } from "#core/dns-options.ts";
import { ConfigError } from "#core/errors.ts";
import type { Matcher, RuleData } from "#core/rule.ts";
import { type DomainPattern, parseDomainPattern } from "#lib/domain-pattern.ts";
import { DomainTrie } from "#lib/domain-trie.ts";
import { atOnce, type Steps } from "#lib/steps.ts";

/** What conditions may ask for; a set that is not loaded yet matches nothing. */
export interface NameSets {
  /** Null: no such category or set. */
  geosite(category: string): RuleData | null;
  ruleSet(name: string): RuleData | null;
  /** One rule of a domain type (DOMAIN-SUFFIX …). Throws `ConfigError`. */
  condition(type: string, payload: string): Matcher;
}

export type NameTest = (host: string) => boolean;

export function patternOf(text: string): DomainPattern {
  const pattern = parseDomainPattern(text);
  if (pattern === null) throw new ConfigError(`"${text}" is no domain pattern`);
  return pattern;
}

/** One answer per name; the condition's text for explanations. */
interface Stage<T> {
  readonly find: (host: string) => Policy<T> | undefined;
}

export interface Policy<T> {
  readonly condition: string;
  readonly value: T;
}

/**
 * Policies in file order. Neighbouring plain domains are one trie, in which the most specific pattern wins; a geosite
 * or rule-set condition ends the trie. The first stage with a match decides.
 */
export class PolicyTable<T> {
  readonly #stages: readonly Stage<T>[];

  private constructor(stages: readonly Stage<T>[]) {
    this.#stages = stages;
  }

  static *build<T>(
    entries: Iterable<readonly [readonly DomainCondition[], T]>,
    sets: NameSets,
  ): Steps<PolicyTable<T>> {
    const stages: Stage<T>[] = [];
    let plain: [DomainPattern, Policy<T>][] = [];
    const closeTrie = function* (): Steps<void> {
      if (plain.length === 0) return;
      const trie = yield* DomainTrie.build(plain);
      stages.push({ find: (host) => trie.get(host) });
      plain = [];
    };
    for (const [conditions, value] of entries) {
      for (const condition of conditions) {
        yield;
        const policy = { condition: conditionText(condition), value };
        if (condition.kind === "domain") plain.push([patternOf(condition.pattern), policy]);
        else {
          yield* closeTrie();
          const test = setTest(condition, sets);
          stages.push({ find: (host) => (test(host) ? policy : undefined) });
        }
      }
    }
    yield* closeTrie();
    return new PolicyTable(stages);
  }

  find(host: string): Policy<T> | null {
    for (const stage of this.#stages) {
      const found = stage.find(host);
      if (found !== undefined) return found;
    }
    return null;
  }
}

export function policyTable<T>(
  policies: readonly PolicyOptions[],
  sets: NameSets,
  open: (policy: PolicyOptions) => T,
): Steps<PolicyTable<T>> {
  return PolicyTable.build(
    policies.values().map((policy) => [policy.conditions, open(policy)] as const),
    sets,
  );
}

/** Does any of the conditions hold? */
export function anyOf(conditions: readonly DomainCondition[], sets: NameSets): NameTest {
  return atOnce(anyOfInSteps(conditions, sets));
}

/** The same in steps. */
export function* anyOfInSteps(conditions: readonly DomainCondition[], sets: NameSets): Steps<NameTest> {
  const table = yield* PolicyTable.build([[conditions, true]], sets);
  return (host) => table.find(host) !== null;
}

function conditionText(condition: DomainCondition): string {
  if (condition.kind === "domain") return condition.pattern;
  return condition.kind === "geosite" ? `geosite:${condition.category}` : `rule-set:${condition.name}`;
}

/** The sets are asked for at every look, so that an update counts at once. */
function setTest(condition: Exclude<DomainCondition, { kind: "domain" }>, sets: NameSets): NameTest {
  if (condition.kind === "geosite")
    return (host) => sets.geosite(condition.category)?.match({ host }) === true;
  return (host) => sets.ruleSet(condition.name)?.match({ host }) === true;
}

/** The first rule that holds says whether a name is faked; none: it is. */
export function* firstRule(rules: readonly FakeIpRule[], sets: NameSets): Steps<NameTest> {
  const compiled: { readonly test: NameTest; readonly fake: boolean }[] = [];
  for (const rule of rules) {
    compiled.push(compiledRule(rule, sets));
    yield;
  }
  return (host) => compiled.find(({ test }) => test(host))?.fake ?? true;
}

function compiledRule(
  { type, payload, fake }: FakeIpRule,
  sets: NameSets,
): { readonly test: NameTest; readonly fake: boolean } {
  if (type === "MATCH") return { test: () => true, fake };
  if (type === "GEOSITE") return { test: setTest({ kind: "geosite", category: payload }, sets), fake };
  if (type === "RULE-SET") return { test: setTest({ kind: "rule-set", name: payload }, sets), fake };
  const matcher = sets.condition(type, payload);
  return { test: (host: string) => matcher.match({ host }) === true, fake };
}
