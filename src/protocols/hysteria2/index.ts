/** hysteria2: streams and datagrams in a QUIC connection that looks like HTTP/3 (docs/protocols/hysteria2.md). */
import { inboundSide, outboundSide, type Protocol } from "#core/protocol.ts";
import { QUIC_STAYS } from "#transport/http3/alpn.ts";
import { descriptions } from "./descriptions.ts";
import { links, listenerNodes, singBox } from "./links.ts";
import { managedUsers } from "./managed.ts";
import { inboundSchema, outboundSchema } from "./options.ts";

export const hysteria2: Protocol = {
  type: "hysteria2",
  inbound: inboundSide(inboundSchema, async (...given) =>
    (await import("./inbound.ts")).openInbound(...given),
  ),
  staysWithProcess: () => QUIC_STAYS,
  outbound: outboundSide("Hysteria2", outboundSchema, async (...given) =>
    (await import("./outbound.ts")).openOutbound(...given),
  ),
  users: managedUsers,
  links,
  listenerNodes,
  singBox,
  descriptions,
};
