/** Rules over ranges of numbers: ports, user ids, DSCP code points. */
import { ConfigError } from "#core/errors.ts";
import type { FactName, Facts, Matcher, RuleType } from "#core/rule.ts";
import { KNOWS_USER_IDS } from "#platform/process.ts";
import { parseRanges } from "#router/ranges.ts";

type NumberFact = "port" | "sourcePort" | "inboundPort" | "uid" | "dscp";

function rangeMatcher(fact: NumberFact, holds: (value: number) => boolean): Matcher {
  const reads: readonly FactName[] = [fact];
  const match = (facts: Facts) => {
    const value = facts[fact];
    return value === undefined ? undefined : value !== null && holds(value);
  };
  return { reads, match };
}

function portRule(type: string, apiType: string, fact: NumberFact): RuleType {
  return {
    type,
    apiType,
    allowsOptions: false,
    parse(payload) {
      const { everything, holds } = parseRanges(payload, 65535);
      if (everything) throw new ConfigError(`${type} needs at least one port: write 443 or 80/8000-8080`);
      return { matcher: rangeMatcher(fact, holds), payload: payload.trim() };
    },
  };
}

export const srcPort = portRule("SRC-PORT", "SrcPort", "sourcePort");
export const dstPort = portRule("DST-PORT", "DstPort", "port");
/** The port of the listener that the session came in by. */
export const inPort = portRule("IN-PORT", "InPort", "inboundPort");

/** UID,1000 matches sessions of local programs that run as that user. */
export const uid: RuleType = {
  type: "UID",
  apiType: "Uid",
  allowsOptions: false,
  parse(payload) {
    if (!KNOWS_USER_IDS)
      throw new ConfigError(
        `UID rules work on Linux and Android only, not on ${process.platform}: remove the rule`,
      );
    return { matcher: rangeMatcher("uid", parseRanges(payload, 0xffff_ffff).holds), payload: payload.trim() };
  },
};

/** DSCP,46 matches the code point of TProxy UDP traffic; other traffic has none. */
export const dscp: RuleType = {
  type: "DSCP",
  apiType: "DSCP",
  allowsOptions: false,
  parse(payload) {
    return { matcher: rangeMatcher("dscp", parseRanges(payload, 63).holds), payload: payload.trim() };
  },
};
