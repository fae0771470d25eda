import { inboundSide, outboundSide } from "#core/protocol.ts";
import type { Protocol } from "#core/protocol.ts";
import { outboundsOfReality } from "#transport/tls/fields.ts";
import { http3Stays } from "#transport/http3/alpn.ts";
import { descriptions } from "./descriptions.ts";
import { links, listenerNodes } from "./links.ts";
import { inboundSchema, outboundSchema } from "./options.ts";

export const trojan: Protocol = {
  type: "trojan",
  inbound: inboundSide(
    inboundSchema,
    async (...given) => (await import("./inbound.ts")).openInbound(...given),
    outboundsOfReality,
  ),
  staysWithProcess: http3Stays,
  outbound: outboundSide("Trojan", outboundSchema, async (...given) =>
    (await import("./outbound.ts")).openOutbound(...given),
  ),
  links,
  listenerNodes,
  descriptions,
};
