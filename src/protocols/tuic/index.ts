/** TUIC version 5: streams and datagrams in a QUIC connection (docs/protocols/tuic.md). */
import { inboundSide, outboundSide, type Protocol } from "#core/protocol.ts";
import { descriptions } from "./descriptions.ts";
import { inboundSchema } from "./inbound-options.ts";
import { openInbound } from "./inbound.ts";
import { links, listenerNodes, singBox } from "./links.ts";
import { managedUsers } from "./managed.ts";
import { outboundSchema } from "./options.ts";
import { openOutbound } from "./outbound.ts";

export const tuic: Protocol = {
  type: "tuic",
  inbound: inboundSide(inboundSchema, openInbound),
  outbound: outboundSide("Tuic", outboundSchema, openOutbound),
  users: managedUsers,
  links,
  listenerNodes,
  singBox,
  descriptions,
};
