/** A dialer that leads to the public internet alone: others who name an address must not lead weir into its own network. */
import type { Dialer } from "#core/outbound.ts";
import type { Reach } from "#core/reach.ts";
import { NOT_GLOBAL, PRIVATE, THIS_MACHINE } from "#net/address/special-ranges.ts";

/**
 * The address that a name resolves to is looked at before it is dialled, and that address is dialled. `advice`: what would
 * be right, for the error.
 */
export function publicOnly(dialer: Dialer, advice: string): Dialer {
  const reach: Reach = {
    refusal: (_network, ip) =>
      THIS_MACHINE.holds(ip) || PRIVATE.holds(ip) || NOT_GLOBAL.holds(ip)
        ? `no address of the public internet; ${advice}`
        : null,
  };
  return {
    connect: (destination, context) => dialer.connect(destination, { ...context, reach }),
    associate: (destination, context) => dialer.associate(destination, { ...context, reach }),
  };
}
