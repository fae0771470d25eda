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
  /** An outbound or group by its name. Throws `DialError` where there is none, and before the start is complete. */
  readonly through: (name: string) => Dialer;
  /** Answers by the DNS engine. Rejects with `DialError` where the `dns` section is off. */
  readonly handleDns: HandleDns;
}

/** What is asked for of a runtime. */
export interface UsedInForce {
  readonly outbounds: Pick<Outbounds, "all" | "direct">;
  readonly names: Pick<DnsStack, "dns">;
}

/** `runtime` answers with null until the first one serves. */
export function inForce(runtime: () => UsedInForce | null): InForce {
  const outbounds = (): UsedInForce["outbounds"] => {
    const present = runtime();
    if (present === null) throw new DialError("failed", "something is dialled before the start is complete");
    return present.outbounds;
  };
  const named = (name: string): Dialer => {
    const found = outbounds().all.get(name);
    if (found === undefined) throw new DialError("failed", `proxy ${name} not found`);
    return found;
  };
  return {
    direct: later(() => outbounds().direct),
    through: (name) => later(() => named(name)),
    async handleDns(message, by) {
      const dns = runtime()?.names.dns ?? null;
      if (dns === null) throw new DialError("aborted", "the dns section is off");
      return dns.handle(message, by);
    },
  };
}

/** A dialer that is asked for at each dial. */
function later(dialer: () => Dialer): Dialer {
  return {
    connect: async (destination, context) => dialer().connect(destination, context),
    plain: (...asked) => dialer().plain?.(...asked) ?? null,
    associate: async (destination, context) => dialer().associate(destination, context),
  };
}
