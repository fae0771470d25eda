/** Rules over where a session came in: names joined by `/`. */
import { ConfigError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { Facts, RuleType } from "#core/rule.ts";

/** In capitals; what `InboundInfo.type` can be, and SOCKS for both versions. */
const INBOUND_TYPES = new Set(
  (
    "HTTP HTTPS SOCKS SOCKS4 SOCKS5 REDIR TPROXY TUN TUNNEL SHADOWSOCKS SNELL VMESS VLESS TROJAN ANYTLS HYSTERIA2 " +
    "TUIC INNER MIERU SUDOKU TRUSTTUNNEL SHADOWQUIC"
  ).split(" "),
);

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
  parse(text) {
    const payload = text.trim().toUpperCase();
    const names = namesOf(payload, "IN-TYPE", "SOCKS/HTTP");
    const unknown = names.find((name) => !INBOUND_TYPES.has(name));
    if (unknown !== undefined)
      throw new ConfigError(`${show(unknown)} is no inbound type: one of ${[...INBOUND_TYPES].join(", ")}`);
    const wanted = new Set(names.flatMap((name) => (name === "SOCKS" ? ["SOCKS4", "SOCKS5"] : [name])));
    const match = ({ inboundType }: Facts) =>
      inboundType === undefined ? undefined : wanted.has(inboundType.toUpperCase());
    return { matcher: { reads: ["inboundType"], match }, payload };
  },
};

/** IN-NAME,lan/guest matches the listener's name. */
export const inName: RuleType = {
  type: "IN-NAME",
  apiType: "InName",
  allowsOptions: false,
  parse(text) {
    const wanted = new Set(namesOf(text, "IN-NAME", "lan/guest"));
    const match = ({ inboundName }: Facts) =>
      inboundName === undefined ? undefined : wanted.has(inboundName);
    return { matcher: { reads: ["inboundName"], match }, payload: text.trim() };
  },
};

/** IN-USER,alice/bob matches the authenticated user. */
export const inUser: RuleType = {
  type: "IN-USER",
  apiType: "InUser",
  allowsOptions: false,
  parse(text) {
    const wanted = new Set(namesOf(text, "IN-USER", "alice/bob"));
    const match = ({ inboundUser }: Facts) =>
      inboundUser === undefined ? undefined : inboundUser !== null && wanted.has(inboundUser);
    return { matcher: { reads: ["inboundUser"], match }, payload: text.trim() };
  },
};
