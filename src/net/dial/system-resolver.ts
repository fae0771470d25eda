/** Names by the operating system, for commands that run beside weir and have no resolver of its configuration. */
import { lookup } from "node:dns/promises";
import { DialError, messageOf } from "#core/errors.ts";
import type { Resolver } from "#core/resolver.ts";
import { ipOf } from "#net/address/ip.ts";

/** The system does not say how long its answers hold. */
const TTL_MS = 60_000;

export const SYSTEM_RESOLVER: Resolver = {
  async lookup(host, { family = 0, signal }) {
    try {
      const found = await lookup(host, { all: true, family });
      signal.throwIfAborted();
      return found.map(({ address }) => ({ ip: ipOf(address), ttlMs: TTL_MS }));
    } catch (error) {
      throw new DialError("resolve", `${host}: ${messageOf(error)}`, { cause: error });
    }
  },
};
