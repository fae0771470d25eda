/** WireGuard nodes (docs/protocols/wireguard.md). */
import { outboundSide, type Protocol } from "#core/protocol.ts";
import { descriptions } from "./descriptions.ts";
import { links } from "./links.ts";
import { outboundSchema } from "./options.ts";

export const wireguard: Protocol = {
  type: "wireguard",
  outbound: outboundSide("WireGuard", outboundSchema, async (...given) =>
    (await import("./outbound.ts")).openOutbound(...given),
  ),
  links,
  descriptions,
};
