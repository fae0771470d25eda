/** `type: dns`: whatever server the client meant, the core's own DNS service answers. For rules on port 53. */
import { duplexPair } from "node:stream";
import * as z from "zod";
import { DialError } from "#core/errors.ts";
import { BOTH_NETWORKS } from "#core/outbound.ts";
import type { DnsAnswers, Outbound, OutboundEnv } from "#core/outbound.ts";
import { outboundSide } from "#core/protocol.ts";
import type { Protocol } from "#core/protocol.ts";
import { DnsFlow } from "./flow.ts";

function dnsOutbound({ name, dns, log }: Pick<OutboundEnv, "name" | "dns" | "log">): Outbound {
  const service = async (): Promise<DnsAnswers> => {
    if (dns !== undefined) return dns;
    throw new DialError("unsupported", `${name} answers DNS, but the dns section is off: set dns.enable`);
  };
  return {
    name,
    type: "Dns",
    networks: BOTH_NETWORKS,
    async connect() {
      const answers = await service();
      const [near, far] = duplexPair();
      answers.serve(far);
      return near;
    },
    associate: async () => new DnsFlow(await service(), log),
    async [Symbol.asyncDispose]() {}, // the caller owns the DNS service
  };
}

export const dns: Protocol = {
  type: "dns",
  outbound: outboundSide("Dns", z.object({}), (_, env) => Promise.resolve(dnsOutbound(env))),
};
