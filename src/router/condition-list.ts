/** A list of conditions without targets, as rule providers of behavior `classical` hold it: one of them is enough. */
import { ConfigError, messageOf } from "#core/errors.ts";
import type { FactName, Matcher, Rule, RuleData, RuleOptions, RuleScope } from "#core/rule.ts";
import type { Steps } from "#lib/steps.ts";
import { RULES_AT_ONCE, stepsOf } from "./compile.ts";
import { ruleTypeOf } from "./rules/index.ts";
import { anyOf } from "./tables/joined.ts";
import { openCondition } from "./tables/open-condition.ts";

/** A condition that could not be read, and why. */
export type OnSkip = (line: string, why: string) => void;

/** Types whose payload may hold commas, so that nothing behind it is a parameter. */
const WHOLE_PAYLOAD: ReadonlySet<string> = new Set([
  "AND",
  "OR",
  "NOT",
  "DOMAIN-REGEX",
  "PROCESS-NAME-REGEX",
  "PROCESS-PATH-REGEX",
]);
const REFUSED: ReadonlySet<string> = new Set(["MATCH", "RULE-SET", "SUB-RULE"]);

/** Lines of `TYPE,payload[,params]`. What cannot be read is skipped. */
export function* conditionsInSteps(
  lines: readonly string[],
  scope: RuleScope,
  onSkip: OnSkip,
): Steps<RuleData> {
  const inner: RuleScope = { ...scope, ruleSet: refuseRuleSet };
  const rules: Rule[] = [];
  for (const line of lines) {
    try {
      rules.push(parseCondition(line, inner));
    } catch (error) {
      onSkip(line, messageOf(error));
    }
    yield;
  }
  const steps = yield* stepsOf(rules);
  const reads = new Set<FactName>();
  for (const [at, { matcher }] of rules.entries()) {
    for (const name of matcher.reads) reads.add(name);
    if (at % RULES_AT_ONCE === 0) yield;
  }
  // The matchers alone: the rules of a table are needed no more, and hundreds of thousands are no rarity.
  const matchers: Matcher[] = [];
  for (const step of steps) {
    matchers.push(step.segment === null ? step.matcher : openCondition(step.segment.table));
    yield;
  }
  return Object.assign(anyOf(matchers, [...reads]), { size: rules.length });
}

function parseCondition(line: string, scope: RuleScope): Rule {
  const comma = line.indexOf(",");
  if (comma < 0) throw new ConfigError("expected TYPE,payload");
  const word = line.slice(0, comma).trim().toUpperCase();
  const type = ruleTypeOf(word);
  if (type === undefined || REFUSED.has(word))
    throw new ConfigError(`${word} cannot stand in a rule provider`);
  const rest = line.slice(comma + 1);
  const [payload = "", ...params] = WHOLE_PAYLOAD.has(word) ? [rest] : rest.split(",");
  const parsed = type.parse(payload.trim(), optionsOf(params), scope);
  return {
    index: -1,
    type: type.type,
    apiType: type.apiType,
    payload: parsed.payload,
    target: "",
    matcher: parsed.matcher,
  };
}

function optionsOf(params: readonly string[]): RuleOptions {
  const words = params.map((param) => param.trim().toLowerCase());
  const source = words.includes("src");
  return { source, noResolve: source || words.includes("no-resolve") };
}

function refuseRuleSet(): never {
  throw new ConfigError("RULE-SET cannot stand in a rule provider");
}
