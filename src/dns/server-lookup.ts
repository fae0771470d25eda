/** Look-ups at servers of their own, through a dialer of their own: for nodes that carry the questions of their clients. */
import type { NameserverOptions } from "#core/dns-options.ts";
import type { Log } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Trust } from "#core/trust.ts";
import { withoutUnsupported } from "#net/dial/nameserver.ts";
import { CachingResolver } from "./caching-resolver.ts";
import { openLookup } from "./lookup.ts";
import { openStrategy } from "./strategy.ts";
import { UpstreamPool } from "./upstream/index.ts";

const MOST_ENTRIES = 1024;
const IPV6_TIMEOUT_MS = 100;

export interface ServerLookupEnv {
  /** Its sockets go straight to the servers. */
  readonly dialer: Dialer;
  /** Names of the servers. */
  readonly resolver: Resolver;
  /** Where the servers stand, for messages. */
  readonly key: string;
  readonly ipv6: boolean;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly trust: Trust;
}

/** No hosts table is asked. Disposing it closes its connections. */
export function openServerLookup(
  servers: readonly NameserverOptions[],
  { dialer, resolver, key, ipv6, log, nowMs, trust }: ServerLookupEnv,
): Resolver & AsyncDisposable {
  const exitFor = () => ({ kind: "direct", dialer }) as const;
  const pool = new UpstreamPool({ exitFor, resolvConf: null, ownAddresses: () => new Set(), nowMs, trust });
  const usable = withoutUnsupported(
    servers,
    key,
    (text) => log.warning(text),
    () => false,
  );
  const main = usable.map((server) => pool.open(server, resolver));
  const strategy = openStrategy({ main, policies: null, fallback: null });
  const cache = { algorithm: "lru", maxEntries: MOST_ENTRIES } as const;
  const role = new CachingResolver({ role: key, strategy, cache, log, nowMs });
  const lookup = openLookup({
    resolver: role,
    hosts: null,
    ipv6,
    ipv6TimeoutMs: IPV6_TIMEOUT_MS,
    isUpstream: () => false,
    upstreamResolver: null,
    shared: null,
  });
  return {
    ...lookup,
    async [Symbol.asyncDispose]() {
      role[Symbol.dispose]();
      await pool[Symbol.asyncDispose]();
    },
  };
}
