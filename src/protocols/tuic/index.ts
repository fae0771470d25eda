/** TUIC version 5: streams and datagrams in a QUIC connection (docs/protocols/tuic.md). */
import { inboundSide, outboundSide, type Protocol } from "#core/protocol.ts";
import { QUIC_STAYS } from "#transport/http3/alpn.ts";
import { descriptions } from "./descriptions.ts";
import { inboundSchema } from "./inbound-options.ts";
import { links, listenerNodes, singBox } from "./links.ts";
import { managedUsers } from "./managed.ts";
import { outboundSchema } from "./options.ts";

export const tuic: Protocol = {
  type: "tuic",
  inbound: inboundSide(inboundSchema, async (...given) =>
    (await import("./inbound.ts")).openInbound(...given),
  ),
  staysWithProcess: () => QUIC_STAYS,
  outbound: outboundSide("Tuic", outboundSchema, async (...given) =>
    (await import("./outbound.ts")).openOutbound(...given),
  ),
  users: managedUsers,
  links,
  listenerNodes,
  singBox,
  descriptions,
};
