/** AnyTLS: streams in TLS sessions whose first writes are padded (docs/protocols/anytls.md). */
import { inboundSide, outboundSide, type Protocol } from "#core/protocol.ts";
import { outboundsOfReality } from "#transport/tls/fields.ts";
import { descriptions } from "./descriptions.ts";
import { openInbound } from "./inbound.ts";
import { links, listenerNodes, singBox } from "./links.ts";
import { managedUsers } from "./managed.ts";
import { inboundSchema, outboundSchema } from "./options.ts";
import { openOutbound } from "./outbound.ts";

export const anytls: Protocol = {
  type: "anytls",
  inbound: inboundSide(inboundSchema, openInbound, outboundsOfReality),
  outbound: outboundSide("AnyTLS", outboundSchema, openOutbound),
  users: managedUsers,
  links,
  listenerNodes,
  singBox,
  descriptions,
};
