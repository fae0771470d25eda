/**
 * The runtime in force, for what outlives reloads: listeners, connections of DNS clients, TUNs. They ask at every use, so
 * that they follow a new configuration and keep no old one in memory.
 */
import { DialError } from "#core/errors.ts";
import type { Dialer } from "#core/outbound.ts";
import type { HandleDns } from "#dns/service.ts";
import type { DnsStack } from "./names.ts";
import type { Outbounds } from "./outbounds.ts";

export interface InForce {
  /** DIRECT. Throws `DialError` before the start is complete. */
  readonly direct: Dialer;
  /** Answers by the DNS engine. Rejects with `DialError` where the `dns` section is off. */
  readonly handleDns: HandleDns;
}

/** What is asked for of a runtime. */
export interface UsedInForce {
  readonly outbounds: Pick<Outbounds, "direct">;
  readonly names: Pick<DnsStack, "dns">;
}

/** `runtime` answers with null until the first one serves. */
export function inForce(runtime: () => UsedInForce | null): InForce {
  const direct = (): Dialer => {
    const present = runtime();
    if (present === null) throw new DialError("failed", "DIRECT is dialled before the start is complete");
    return present.outbounds.direct;
  };
  return {
    direct: {
      connect: async (destination, context) => direct().connect(destination, context),
      associate: async (destination, context) => direct().associate(destination, context),
    },
    async handleDns(message, by) {
      const dns = runtime()?.names.dns ?? null;
      if (dns === null) throw new DialError("aborted", "the dns section is off");
      return dns.handle(message, by);
    },
  };
}
