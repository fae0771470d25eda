import type { RuleScope } from "#core/rule.ts";
import type { NameSets } from "#dns/policy.ts";
import { RULE_TYPES } from "#router/rules/index.ts";

/** No lists are loaded: what would ask them matches nothing. */
export const NO_DATA: RuleScope = {
  ruleSet: () => null,
  geosite: () => null,
  geoip: () => null,
  asn: () => null,
};

/** The lists of a scope, as the DNS engine asks for them. */
export function nameSets(scope: RuleScope): NameSets {
  return {
    geosite: (category) => scope.geosite(category),
    ruleSet: (name) => scope.ruleSet(name),
    condition(type, payload) {
      const ruleType = RULE_TYPES.find((known) => known.type === type);
      if (ruleType === undefined) throw new Error(`${type} is no rule type`);
      return ruleType.parse(payload, { noResolve: false, source: false }, scope).matcher;
    },
  };
}

export const NO_NAME_SETS: NameSets = nameSets(NO_DATA);
