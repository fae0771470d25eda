/** Rules whose contents lie in data beside the rules. What is not loaded matches nothing. */
import { ConfigError, UnusableError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type {
  AddressRecords,
  FactName,
  Facts,
  Matcher,
  ParsedCondition,
  ReadRecords,
  RuleData,
  RuleOptions,
  RuleType,
} from "#core/rule.ts";
import { isLanIp } from "#net/address/cidr.ts";
import { addressMatcher, OF_SOURCE } from "#router/address-rule.ts";

/** RULE-SET,name: the list of that rule provider. */
export const ruleSet: RuleType = {
  type: "RULE-SET",
  apiType: "RuleSet",
  allowsOptions: true,
  parse(text, options, scope) {
    const payload = text.trim();
    if (payload === "") throw new ConfigError("RULE-SET needs the name of a rule provider");
    const data = scope.ruleSet(payload);
    return { matcher: data === null ? NOTHING : dataMatcher(data, options, false), payload };
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
        return { matcher: addressMatcher(options, (ip) => isLanIp(ip) !== negated), ...shown };
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
      const matcher = data === null ? NOTHING : dataMatcher(data, ofSource ? OF_SOURCE : options, false);
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

const NOTHING: RuleData = { reads: [], match: () => false, size: 0 };

function negation(payload: string): readonly [negated: boolean, rest: string] {
  return payload.startsWith("!") ? [true, payload.slice(1)] : [false, payload];
}

/** GEOSITE and GEOIP show the number of their records. */
function sized(data: RuleData | null, options: RuleOptions, negated: boolean): RuleData {
  if (data === null) return NOTHING;
  const matcher = dataMatcher(data, options, negated);
  return {
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

/** `reads` is asked for every time: another version of the list may need other facts. */
function dataMatcher(data: RuleData, { noResolve, source }: RuleOptions, negated: boolean): Matcher {
  const verdict = (facts: Facts) => {
    const answer = data.match(facts);
    return negated && answer !== undefined ? !answer : answer;
  };
  const lacksAddress = (facts: Facts) => noResolve && data.reads.includes("ip") && facts.ip === undefined;
  return {
    get reads() {
      return source ? [...new Set(data.reads.flatMap((name) => SOURCE_OF[name] ?? [name]))] : data.reads;
    },
    get unavailable() {
      return data.unavailable ?? null;
    },
    match: (facts) => {
      if (source) return verdict(sourceView(facts, data.reads));
      return verdict(lacksAddress(facts) ? { ...pick(facts, data.reads), ip: null } : facts);
    },
    records: source ? recordsOfSource(data) : data.records?.bind(data),
  };
}

/** What `src` reads instead of the destination's facts; a source has no name. */
const SOURCE_OF: Partial<Record<FactName, readonly FactName[]>> = {
  host: [],
  ip: ["sourceIp"],
  port: ["sourcePort"],
};

function sourceView(facts: Facts, reads: readonly FactName[]): Facts {
  const others = reads.filter((name) => SOURCE_OF[name] === undefined);
  return {
    ...pick(facts, others),
    host: null,
    ...(reads.includes("ip") ? pickAs(facts.sourceIp, "ip") : {}),
    ...(reads.includes("port") ? pickAs(facts.sourcePort, "port") : {}),
  };
}

/** A source is looked up as if it were the destination. */
function recordsOfSource(data: RuleData): ReadRecords | undefined {
  if (data.records === undefined) return undefined;
  return (facts, known) => exchanged(data.records?.(sourceView(facts, data.reads), exchanged(known)) ?? null);
}

function exchanged(records: AddressRecords | null): AddressRecords | null {
  if (records === null) return null;
  return {
    sourceCodes: records.destinationCodes,
    destinationCodes: records.sourceCodes,
    sourceSystem: records.destinationSystem,
    destinationSystem: records.sourceSystem,
  };
}

function pickAs(value: unknown, name: FactName): Facts {
  return value === undefined ? {} : { [name]: value };
}

function pick(facts: Facts, names: readonly FactName[]): Facts {
  return Object.assign({}, ...names.map((name) => pickAs(facts[name], name)));
}
