import type { Config, RuleConfig } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import type { Rule, RuleScope } from "#core/rule.ts";

/** The rules of one runtime, ready to be compiled. */
export interface RuleLists {
  readonly rules: readonly Rule[];
  readonly subRules: ReadonlyMap<string, readonly Rule[]>;
}

/** The configuration has checked every line; here each gets its matcher over the data that is loaded now. */
export function openRules({ rules, subRules }: Config, scope: RuleScope): RuleLists {
  const openList = (list: readonly RuleConfig[], isTop: boolean): readonly Rule[] =>
    list.map((rule, at) => openRule(rule, isTop ? at : -1, scope));
  return {
    rules: openList(rules, true),
    subRules: new Map([...subRules].map(([name, list]) => [name, openList(list, false)])),
  };
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
