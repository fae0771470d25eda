/** hysteria2: streams and datagrams in a QUIC connection that looks like HTTP/3 (docs/protocols/hysteria2.md). */
import { outboundSide, type Protocol } from "#core/protocol.ts";
import { links, singBox } from "./links.ts";
import { outboundSchema } from "./options.ts";
import { openOutbound } from "./outbound.ts";

export const hysteria2: Protocol = {
  type: "hysteria2",
  outbound: outboundSide("Hysteria2", outboundSchema, openOutbound),
  links,
  singBox,
};
