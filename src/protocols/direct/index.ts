/** `type: direct`, and the built-ins DIRECT and COMPATIBLE. */
import * as z from "zod";
import { BOTH_NETWORKS } from "#core/outbound.ts";
import type { Dialer, Outbound } from "#core/outbound.ts";
import { outboundSide } from "#core/protocol.ts";
import type { Protocol } from "#core/protocol.ts";

/** What the dialer does, under a name. COMPATIBLE (`Compatible`) is DIRECT for groups without a usable member. */
export function directOutbound(
  name: string,
  dialer: Dialer,
  type: "Direct" | "Compatible" = "Direct",
): Outbound {
  return {
    name,
    type,
    networks: BOTH_NETWORKS,
    connect: (destination, context) => dialer.connect(destination, context),
    plain: (destination, reach, signal) => dialer.plain?.(destination, reach, signal) ?? null,
    template: () => dialer.template?.() ?? null,
    associate: (destination, context) => dialer.associate(destination, context),
    async [Symbol.asyncDispose]() {}, // the caller owns the dialer
  };
}

export const direct: Protocol = {
  type: "direct",
  outbound: outboundSide("Direct", z.object({}), (_, { name, dialer }) =>
    Promise.resolve(directOutbound(name, dialer)),
  ),
};
