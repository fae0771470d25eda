import { inboundSide, outboundSide } from "#core/protocol.ts";
import type { Protocol } from "#core/protocol.ts";
import { outboundsOfReality } from "#transport/tls/fields.ts";
import { http3Stays } from "#transport/http3/alpn.ts";
import { descriptions } from "./descriptions.ts";
import { keyMaterial } from "./encryption/generate.ts";
import { links, listenerNodes, singBox } from "./links.ts";
import { managedUsers } from "./managed.ts";
import { inboundSchema, outboundSchema } from "./options.ts";

export const vless: Protocol = {
  type: "vless",
  inbound: inboundSide(
    inboundSchema,
    async (...given) => (await import("./inbound.ts")).openInbound(...given),
    outboundsOfReality,
  ),
  staysWithProcess: http3Stays,
  outbound: outboundSide("Vless", outboundSchema, async (...given) =>
    (await import("./outbound.ts")).openOutbound(...given),
  ),
  users: managedUsers,
  links,
  listenerNodes,
  singBox,
  keyMaterial,
  descriptions,
};
