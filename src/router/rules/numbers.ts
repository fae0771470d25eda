/** Rules over ranges of numbers: ports, user ids, DSCP code points. */
import { ConfigError } from "#core/errors.ts";
import type { ConditionOf } from "#core/condition.ts";
import type { RuleType } from "#core/rule.ts";
import { KNOWS_USER_IDS } from "#platform/process.ts";
import { EVERYTHING, parseRanges } from "#router/ranges.ts";
import { openCondition } from "#router/tables/open-condition.ts";

type NumberFact = ConditionOf<"numbers">["fact"];

function portRule(type: string, apiType: string, fact: NumberFact): RuleType {
  return {
    type,
    apiType,
    allowsOptions: false,
    parse(payload) {
      const ranges = parseRanges(payload, 65535);
      if (ranges === EVERYTHING)
        throw new ConfigError(`${type} needs at least one port: write 443 or 80/8000-8080`);
      return { matcher: openCondition({ is: "numbers", fact, ranges }), payload: payload.trim() };
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
    const ranges = parseRanges(payload, 0xffff_ffff);
    return { matcher: openCondition({ is: "numbers", fact: "uid", ranges }), payload: payload.trim() };
  },
};

/** DSCP,46 matches the code point of TProxy UDP traffic; other traffic has none. */
export const dscp: RuleType = {
  type: "DSCP",
  apiType: "DSCP",
  allowsOptions: false,
  parse(payload) {
    const ranges = parseRanges(payload, 63);
    return { matcher: openCondition({ is: "numbers", fact: "dscp", ranges }), payload: payload.trim() };
  },
};
