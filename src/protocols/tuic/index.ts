/** TUIC version 5: streams and datagrams in a QUIC connection (docs/protocols/tuic.md). */
import { outboundSide, type Protocol } from "#core/protocol.ts";
import { links, singBox } from "./links.ts";
import { outboundSchema } from "./options.ts";
import { openOutbound } from "./outbound.ts";

export const tuic: Protocol = {
  type: "tuic",
  outbound: outboundSide("Tuic", outboundSchema, openOutbound),
  links,
  singBox,
};
