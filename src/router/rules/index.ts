/** The registry of rule types: one line each. */
import type { RuleType } from "#core/rule.ts";
import { geoip, geosite, ipAsn, ruleSet, srcGeoip, srcIpAsn } from "./data.ts";
import { domain, domainSuffix } from "./domain.ts";
import { domainKeyword, domainRegex, domainWildcard } from "./domain-text.ts";
import { inName, inType, inUser } from "./inbound.ts";
import { ipCidr, ipCidr6, srcIpCidr } from "./ip-cidr.ts";
import { ipSuffix, srcIpSuffix } from "./ip-suffix.ts";
import { srcMac } from "./mac.ts";
import { logicTypes } from "./logic.ts";
import { matchAll } from "./match-all.ts";
import { network } from "./network.ts";
import { dscp, dstPort, inPort, srcPort, uid } from "./numbers.ts";
import { processRules } from "./process.ts";

export const RULE_TYPES: readonly RuleType[] = [
  domain,
  domainSuffix,
  domainKeyword,
  domainRegex,
  domainWildcard,
  geosite,
  geoip,
  srcGeoip,
  ipAsn,
  srcIpAsn,
  ipCidr,
  ipCidr6,
  srcIpCidr,
  ipSuffix,
  srcIpSuffix,
  srcMac,
  srcPort,
  dstPort,
  inPort,
  inType,
  inUser,
  inName,
  ...processRules,
  uid,
  network,
  dscp,
  ruleSet,
  ...logicTypes(ruleTypeOf), // AND, OR, NOT, SUB-RULE
  matchAll,
];

/** By name as in files; case does not matter. */
export function ruleTypeOf(name: string): RuleType | undefined {
  const wanted = name.toUpperCase();
  return RULE_TYPES.find(({ type }) => type === wanted);
}
