/** AnyTLS: streams in TLS sessions whose first writes are padded (docs/protocols/anytls.md). */
import { inboundSide, outboundSide, type Protocol } from "#core/protocol.ts";
import { outboundsOfReality } from "#transport/tls/fields.ts";
import { descriptions } from "./descriptions.ts";
import { isOfMihomo, links, listenerNodes, singBox } from "./links.ts";
import { managedUsers } from "./managed.ts";
import { inboundSchema, outboundSchema } from "./options.ts";

export const anytls: Protocol = {
  type: "anytls",
  inbound: inboundSide(
    inboundSchema,
    async (...given) => (await import("./inbound.ts")).openInbound(...given),
    outboundsOfReality,
  ),
  outbound: outboundSide("AnyTLS", outboundSchema, async (...given) =>
    (await import("./outbound.ts")).openOutbound(...given),
  ),
  users: managedUsers,
  links,
  listenerNodes,
  isOfMihomo,
  singBox,
  descriptions,
};
