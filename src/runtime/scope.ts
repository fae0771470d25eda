import { inboundTypesOf } from "#core/protocol.ts";
import type { RuleData, RuleScope } from "#core/rule.ts";
import type { NameSets } from "#dns/policy.ts";
import type { Geodata } from "#geodata/geodata.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { RULE_TYPES } from "#router/rules/index.ts";

/** The lists that rules may name: those of the rule providers, and the databases. */
export function openScope(ruleSets: ReadonlyMap<string, RuleData>, geodata: Geodata): RuleScope {
  return {
    ruleSet: (name) => ruleSets.get(name) ?? null,
    geosite: (category) => geodata.geosite(category),
    geoip: (code) => geodata.geoip(code),
    asn: (number) => geodata.asn(number),
    inboundTypes: inboundTypesOf(PROTOCOLS),
  };
}

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
