import { inboundSide, outboundSide } from "#core/protocol.ts";
import type { Protocol } from "#core/protocol.ts";
import { outboundsOfReality } from "#transport/tls/fields.ts";
import { descriptions } from "./descriptions.ts";
import { openInbound } from "./inbound.ts";
import { links, listenerNodes } from "./links.ts";
import { inboundSchema, outboundSchema } from "./options.ts";
import { openOutbound } from "./outbound.ts";

export const trojan: Protocol = {
  type: "trojan",
  inbound: inboundSide(inboundSchema, openInbound, outboundsOfReality),
  outbound: outboundSide("Trojan", outboundSchema, openOutbound),
  links,
  listenerNodes,
  descriptions,
};
