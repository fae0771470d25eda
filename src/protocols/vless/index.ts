import { inboundSide, outboundSide } from "#core/protocol.ts";
import type { Protocol } from "#core/protocol.ts";
import { outboundsOfReality } from "#transport/tls/fields.ts";
import { descriptions } from "./descriptions.ts";
import { openInbound } from "./inbound.ts";
import { keyMaterial } from "./encryption/generate.ts";
import { links, listenerNodes, singBox } from "./links.ts";
import { managedUsers } from "./managed.ts";
import { inboundSchema, outboundSchema } from "./options.ts";
import { openOutbound } from "./outbound.ts";

export const vless: Protocol = {
  type: "vless",
  inbound: inboundSide(inboundSchema, openInbound, outboundsOfReality),
  outbound: outboundSide("Vless", outboundSchema, openOutbound),
  users: managedUsers,
  links,
  listenerNodes,
  singBox,
  keyMaterial,
  descriptions,
};
