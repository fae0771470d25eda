import type { CachesControl, DnsControl } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import { smallestTtlOf } from "#dns/packet.ts";
import type { DnsStack } from "#runtime/names.ts";

/** `names` answers with those of the current runtime. */
export function dnsControl(names: () => DnsStack): DnsControl {
  const engine = () => {
    const { dns } = names();
    if (dns === null) throw new ApiError(500, "DNS section is disabled");
    return dns;
  };
  return {
    get enabled() {
      return names().dns !== null;
    },
    query: async (name, type, signal) => engine().query(name, type, signal),
    async exchange(question) {
      const message = await engine().handle(question, { network: "tcp" });
      return { message, ttlSeconds: smallestTtlOf(message) };
    },
  };
}

export function cachesControl(names: () => DnsStack): CachesControl {
  return {
    flushDns: () => names().flushCache(),
    async flushFakeIp() {
      names().dns?.flushFakeIp();
    },
  };
}
