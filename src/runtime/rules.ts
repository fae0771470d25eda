import type { Config, RuleConfig } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import type { Rule, RuleScope } from "#core/rule.ts";
import type { Steps } from "#lib/steps.ts";

/** The rules of one runtime, ready to be compiled. */
export interface RuleLists {
  readonly rules: readonly Rule[];
  readonly subRules: ReadonlyMap<string, readonly Rule[]>;
}

/** The configuration has checked every line; here each gets its matcher over the data that is loaded now. */
export function* openRules(
  { rules, subRules }: Pick<Config, "rules" | "subRules">,
  scope: RuleScope,
): Steps<RuleLists> {
  const nested = new Map<string, readonly Rule[]>();
  for (const [name, list] of subRules) nested.set(name, yield* openList(list, false, scope));
  return { rules: yield* openList(rules, true, scope), subRules: nested };
}

function* openList(list: readonly RuleConfig[], isTop: boolean, scope: RuleScope): Steps<readonly Rule[]> {
  const rules: Rule[] = [];
  for (const [at, rule] of list.entries()) {
    rules.push(openRule(rule, isTop ? at : -1, scope));
    yield;
  }
  return rules;
}

function openRule(
  { type, payload, target, options, text }: RuleConfig,
  index: number,
  scope: RuleScope,
): Rule {
  try {
    const parsed = type.parse(payload, options, scope);
    return {
      index,
      type: type.type,
      apiType: parsed.apiType ?? type.apiType,
      payload: parsed.payload,
      target,
      matcher: parsed.matcher,
    };
  } catch (error) {
    throw new Error(`rules[${index}] [${text}] error: ${messageOf(error)}`, { cause: error });
  }
}
