import type { Config, RuleConfig } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import type { Rule, RuleScope } from "#core/rule.ts";
import type { Steps } from "#lib/steps.ts";
import { mergeableOf } from "#router/compile.ts";

/** The rules of one runtime, ready to be compiled. */
export interface RuleLists {
  readonly rules: readonly Rule[];
  readonly subRules: ReadonlyMap<string, readonly Rule[]>;
}

type RuleConfigs = Pick<Config, "rules" | "subRules">;

/** Lists that are in force, with the lines that they were made of. */
export interface RulesBefore extends RuleLists {
  readonly config: RuleConfigs;
}

/**
 * The configuration has checked every line; here each gets its matcher over the data that is loaded now. A rule that stood in
 * the same place before and knows names and networks alone is the same object again, so that its tables can be, too.
 */
export function* openRules(
  config: RuleConfigs,
  scope: RuleScope,
  before: RulesBefore | null,
): Steps<RuleLists> {
  const subRules = new Map<string, readonly Rule[]>();
  for (const [name, list] of config.subRules) {
    const known = { list: before?.config.subRules.get(name) ?? [], rules: before?.subRules.get(name) ?? [] };
    subRules.set(name, yield* openList(list, false, scope, known));
  }
  const known = { list: before?.config.rules ?? [], rules: before?.rules ?? [] };
  return { rules: yield* openList(config.rules, true, scope, known), subRules };
}

interface Known {
  readonly list: readonly RuleConfig[];
  readonly rules: readonly Rule[];
}

function* openList(
  list: readonly RuleConfig[],
  isTop: boolean,
  scope: RuleScope,
  known: Known,
): Steps<readonly Rule[]> {
  const rules: Rule[] = [];
  for (const [at, config] of list.entries()) {
    const before = known.list[at]?.text === config.text ? known.rules[at] : undefined;
    const isSame = before !== undefined && mergeableOf(before) !== null;
    rules.push(isSame ? before : openRule(config, isTop ? at : -1, scope));
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
