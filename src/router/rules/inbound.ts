/** Rules over where a session came in: names joined by `/`. */
import { ConfigError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { RuleType } from "#core/rule.ts";
import { openCondition } from "#router/tables/open-condition.ts";

/** Besides those of the protocols: what has no listener of a protocol, and words of the ecosystem that never match here. */
const OTHER_TYPES = [
  "TUN",
  "INNER",
  "SNELL",
  "HYSTERIA2",
  "TUIC",
  "MIERU",
  "SUDOKU",
  "TRUSTTUNNEL",
  "SHADOWQUIC",
];

function namesOf(payload: string, type: string, example: string): readonly string[] {
  const names = payload.split("/").map((name) => name.trim());
  if (names.includes("")) throw new ConfigError(`${type} needs names joined by "/": write ${example}`);
  return names;
}

/** IN-TYPE,SOCKS/HTTP matches what the client spoke. */
export const inType: RuleType = {
  type: "IN-TYPE",
  apiType: "InType",
  allowsOptions: false,
  parse(text, _options, { inboundTypes }) {
    const payload = text.trim().toUpperCase();
    const names = namesOf(payload, "IN-TYPE", "SOCKS/HTTP");
    const known = [...inboundTypes, ...OTHER_TYPES];
    const unknown = names.find((name) => !known.includes(name));
    if (unknown !== undefined)
      throw new ConfigError(`${show(unknown)} is no inbound type: one of ${known.join(", ")}`);
    const words = names.flatMap((name) => (name === "SOCKS" ? ["SOCKS4", "SOCKS5"] : [name]));
    return { matcher: openCondition({ is: "one-of", fact: "inboundType", words }), payload };
  },
};

/** IN-NAME,lan/guest matches the listener's name. */
export const inName: RuleType = {
  type: "IN-NAME",
  apiType: "InName",
  allowsOptions: false,
  parse(text) {
    const words = namesOf(text, "IN-NAME", "lan/guest");
    return { matcher: openCondition({ is: "one-of", fact: "inboundName", words }), payload: text.trim() };
  },
};

/** IN-USER,alice/bob matches the authenticated user. */
export const inUser: RuleType = {
  type: "IN-USER",
  apiType: "InUser",
  allowsOptions: false,
  parse(text) {
    const words = namesOf(text, "IN-USER", "alice/bob");
    return { matcher: openCondition({ is: "one-of", fact: "inboundUser", words }), payload: text.trim() };
  },
};
