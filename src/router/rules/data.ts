/** Rules whose contents lie in data beside the rules. What is not loaded matches nothing. */
import { ConfigError, UnusableError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { ParsedCondition, RuleData, RuleOptions, RuleType } from "#core/rule.ts";
import { OF_SOURCE, sideOf } from "#router/address-side.ts";
import { conditionOf } from "#router/tables/joined.ts";
import { listMatcher } from "#router/tables/list-matcher.ts";
import { openCondition } from "#router/tables/open-condition.ts";

/** RULE-SET,name: the list of that rule provider. */
export const ruleSet: RuleType = {
  type: "RULE-SET",
  apiType: "RuleSet",
  allowsOptions: true,
  parse(text, options, scope) {
    const payload = text.trim();
    if (payload === "") throw new ConfigError("RULE-SET needs the name of a rule provider");
    const data = scope.ruleSet(payload);
    return { matcher: data === null ? NOTHING : listMatcher(data, { ...options, negated: false }), payload };
  },
};

/** GEOSITE,category; `!category`; `category@attribute`. */
export const geosite: RuleType = {
  type: "GEOSITE",
  apiType: "GeoSite",
  allowsOptions: false,
  parse(text, options, scope) {
    const payload = text.trim().toLowerCase();
    const [negated, category] = negation(payload);
    if (category === "") throw new ConfigError("GEOSITE needs a category: write google or google@cn");
    return { matcher: sized(scope.geosite(category), options, negated), payload };
  },
};

/** GEOIP,CN; `!cn`; LAN is built in. SRC-GEOIP tests the source. */
function geoipRule(type: string, apiType: string, ofSource: boolean): RuleType {
  return {
    type,
    apiType,
    allowsOptions: !ofSource,
    parse(text, given, scope): ParsedCondition {
      const options = ofSource ? OF_SOURCE : given;
      const payload = text.trim().toLowerCase();
      const [negated, code] = negation(payload);
      if (code === "") throw new UnusableError(`${type} needs a country code or LAN: write CN`);
      const shown = { payload, apiType: ofSource || !given.source ? apiType : `Src${apiType}` };
      if (code === "lan")
        return { matcher: openCondition({ is: "lan", side: sideOf(options), negated }), ...shown };
      return { matcher: sized(scope.geoip(code), options, negated), ...shown };
    },
  };
}

export const geoip = geoipRule("GEOIP", "GeoIP", false);
export const srcGeoip = geoipRule("SRC-GEOIP", "SrcGeoIP", true);

/** IP-ASN,13335 */
function asnRule(type: string, apiType: string, ofSource: boolean): RuleType {
  return {
    type,
    apiType,
    allowsOptions: !ofSource,
    parse(text, options, scope) {
      const payload = text.trim().replace(/^AS(?=\d)/i, "");
      const number = /^\d{1,10}$/.test(payload) ? Number(payload) : -1;
      if (number < 0 || number > 0xffff_ffff)
        throw new ConfigError(`${show(text)} is no AS number: write 13335`);
      const data = scope.asn(number);
      const matcher =
        data === null ? NOTHING : listMatcher(data, { ...(ofSource ? OF_SOURCE : options), negated: false });
      return {
        matcher,
        payload: String(number),
        apiType: ofSource || !options.source ? apiType : `Src${apiType}`,
      };
    },
  };
}

export const ipAsn = asnRule("IP-ASN", "IPASN", false);
export const srcIpAsn = asnRule("SRC-IP-ASN", "SrcIPASN", true);

const NOTHING: RuleData = { ...openCondition({ is: "never" }), size: 0 };

function negation(payload: string): readonly [negated: boolean, rest: string] {
  return payload.startsWith("!") ? [true, payload.slice(1)] : [false, payload];
}

/** GEOSITE and GEOIP show the number of their records. */
function sized(data: RuleData | null, options: RuleOptions, negated: boolean): RuleData {
  if (data === null) return NOTHING;
  const matcher = listMatcher(data, { ...options, negated });
  return {
    get condition() {
      return conditionOf(matcher);
    },
    get reads() {
      return matcher.reads;
    },
    match: (facts) => matcher.match(facts),
    records: matcher.records,
    get size() {
      return data.size;
    },
    get unavailable() {
      return data.unavailable ?? null;
    },
  };
}
