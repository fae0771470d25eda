/** VMess with the AEAD header (docs/protocols/vmess.md). */
import { inboundSide, outboundSide, type Protocol } from "#core/protocol.ts";
import { outboundsOfReality } from "#transport/tls/fields.ts";
import { descriptions } from "./descriptions.ts";
import { openInbound } from "./inbound.ts";
import { links, listenerNodes } from "./links.ts";
import { inboundSchema, outboundSchema } from "./options.ts";
import { openOutbound } from "./outbound.ts";

export const vmess: Protocol = {
  type: "vmess",
  inbound: inboundSide(inboundSchema, openInbound, outboundsOfReality),
  outbound: outboundSide("Vmess", outboundSchema, openOutbound),
  links,
  listenerNodes,
  descriptions,
};
