/** VMess with the AEAD header (docs/protocols/vmess.md). */
import { inboundSide, outboundSide, type Protocol } from "#core/protocol.ts";
import { outboundsOfReality } from "#transport/tls/fields.ts";
import { http3Stays } from "#transport/http3/alpn.ts";
import { descriptions } from "./descriptions.ts";
import { links, listenerNodes } from "./links.ts";
import { inboundSchema, outboundSchema } from "./options.ts";

export const vmess: Protocol = {
  type: "vmess",
  inbound: inboundSide(
    inboundSchema,
    async (...given) => (await import("./inbound.ts")).openInbound(...given),
    outboundsOfReality,
  ),
  staysWithProcess: http3Stays,
  outbound: outboundSide("Vmess", outboundSchema, async (...given) =>
    (await import("./outbound.ts")).openOutbound(...given),
  ),
  links,
  listenerNodes,
  descriptions,
};
