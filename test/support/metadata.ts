import { randomUUID } from "node:crypto";
import type { Decision } from "#core/router.ts";
import type { Destination, Metadata, Network } from "#core/session.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Rule } from "#core/rule.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";

/** What a plain listener on loopback would know. */
export function metadataOf(destination: Destination, network: Network = "tcp"): Metadata {
  return {
    id: randomUUID(),
    network,
    source: { ip: LOOPBACK_V4, port: 50_000 },
    destination,
    inbound: {
      name: "test",
      type: "Tunnel",
      user: null,
      local: { ip: LOOPBACK_V4, port: 7890 },
      ruleList: null,
      target: null,
    },
    dscp: null,
    acceptedAtMs: Date.now(),
  };
}

/** As if a rule had led straight to this outbound. */
export function decisionOf(outbound: Outbound, destination: Destination, rule: Rule | null = null): Decision {
  return {
    outbound,
    chain: [outbound.name],
    groups: [],
    dnsMode: "normal",
    destination,
    rule,
    unruled: false,
    facts: {},
  };
}

/** MATCH. */
export const matchAll: Rule = {
  index: 0,
  type: "MATCH",
  apiType: "Match",
  payload: "",
  target: "DIRECT",
  matcher: { reads: [], match: () => true },
};
