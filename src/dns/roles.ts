/** The resolvers of dns.md §1: which nameservers each of them asks, and which of them the core uses for what. */
import type { DnsOptions, NameserverOptions, PolicyOptions } from "#core/dns-options.ts";
import { ConfigError, DialError } from "#core/errors.ts";
import type { Steps } from "#lib/steps.ts";
import type { Resolver } from "#core/resolver.ts";
import { needsNoResolver, withoutUnsupported } from "#net/dial/nameserver.ts";
import { CachingResolver } from "./caching-resolver.ts";
import type { DnsEnv } from "./env.ts";
import type { Hosts } from "./hosts.ts";
import { openLookup } from "./lookup.ts";
import { policyTable } from "./policy.ts";
import { openFallback, openStrategy, type Strategy } from "./strategy.ts";
import type { SharedAnswers } from "./shared-answers.ts";
import type { UpstreamPool } from "./upstream/index.ts";
import type { Upstream } from "./upstream/upstream.ts";

/** What the core looks names up with. */
export interface CoreResolvers {
  /** Names that rules need. */
  readonly resolver: Resolver;
  /** Names of proxy servers. */
  readonly proxyResolver: Resolver;
  /** Names dialled by DIRECT. */
  readonly directResolver: Resolver;
}

export interface Roles {
  readonly main: CachingResolver;
  readonly open: readonly CachingResolver[];
  readonly resolvers: CoreResolvers;
}

/** The four resolvers of dns.md §1 and what the core sees of them. */
export function* openRoles(
  options: DnsOptions,
  env: DnsEnv,
  pool: UpstreamPool,
  hosts: Hosts,
  answers: SharedAnswers,
): Steps<Roles> {
  const { log, nowMs, sets, hasQuic } = env;
  const cache = { algorithm: options.cacheAlgorithm, maxEntries: options.cacheMaxSize };
  const open: CachingResolver[] = [];
  const roleOf = (role: string, strategy: Strategy) => {
    const made = new CachingResolver({ role, strategy, cache, log, nowMs });
    open.push(made);
    return made;
  };
  const names = yield* upstreamNames(options);
  const lookupOf = (
    resolver: CachingResolver,
    upstreamResolver: Resolver | null,
    shared: SharedAnswers | null = null,
  ) =>
    openLookup({
      shared,
      resolver,
      hosts,
      ipv6: env.ipv6,
      ipv6TimeoutMs: options.ipv6TimeoutMs,
      isUpstream: (host) => names.has(host),
      upstreamResolver,
    });

  const noNames: Resolver = {
    lookup: (host) => Promise.reject(new DialError("resolve", `default-nameserver ${host} is no address`)),
  };
  const listOf = (servers: readonly NameserverOptions[], key: string, resolver: Resolver) =>
    withoutUnsupported(servers, key, (text) => log.warning(text), hasQuic).map((server) =>
      pool.open(server, resolver),
    );
  const defaults = options.defaultNameserver;
  const named = defaults.find((server) => !needsNoResolver(server));
  if (named !== undefined) throw new ConfigError(`dns.default-nameserver: ${named.text} must be an address`);
  const plain = (main: readonly Upstream[]) => openStrategy({ main, policies: null, fallback: null });
  const defaultRole = roleOf("default", plain(listOf(defaults, "dns.default-nameserver", noNames)));
  const bootstrap = lookupOf(defaultRole, null);

  const list = (servers: readonly NameserverOptions[], key: string) => listOf(servers, key, bootstrap);
  const table = function* (policies: readonly PolicyOptions[], key: string) {
    return policies.length === 0
      ? null
      : yield* policyTable(policies, sets, ({ servers }) => list(servers, key));
  };
  const policies = yield* table(options.nameserverPolicy, "dns.nameserver-policy");
  const nameservers = list(options.nameserver, "dns.nameserver");
  if (nameservers.length === 0)
    throw new ConfigError("dns.nameserver: must not be empty while dns.enable is true");
  const second = list(options.fallback, "dns.fallback");
  const fallback = second.length === 0 ? null : yield* openFallback(second, options, sets, env.countryOf);
  const main = roleOf("main", openStrategy({ main: nameservers, policies, fallback }));

  const proxies = list(options.proxyServerNameserver, "dns.proxy-server-nameserver");
  const proxyPolicies = yield* table(
    options.proxyServerNameserverPolicy,
    "dns.proxy-server-nameserver-policy",
  );
  const directs = list(options.directNameserver, "dns.direct-nameserver");
  const followed = options.directNameserverFollowPolicy ? policies : null;
  const resolver = lookupOf(main, bootstrap, answers);
  const other = (
    role: string,
    servers: readonly Upstream[],
    own: typeof policies,
    shared: SharedAnswers | null,
  ) =>
    servers.length === 0
      ? resolver
      : lookupOf(
          roleOf(role, openStrategy({ main: servers, policies: own, fallback: null })),
          bootstrap,
          shared,
        );
  const proxyResolver = other("proxy", proxies, proxyPolicies, null); // servers of nodes are not for other threads to dial
  return {
    main,
    open,
    resolvers: { resolver, proxyResolver, directResolver: other("direct", directs, followed, answers) },
  };
}

/** Every server that is named and not numbered, in whatever list. */
function* upstreamNames(options: DnsOptions): Steps<ReadonlySet<string>> {
  const lists = [
    options.nameserver,
    options.fallback,
    options.proxyServerNameserver,
    options.directNameserver,
  ];
  const policies = [...options.nameserverPolicy, ...options.proxyServerNameserverPolicy];
  const names = new Set<string>();
  for (const servers of [...lists, ...policies.map((policy) => policy.servers)]) {
    for (const server of servers) if (!needsNoResolver(server)) names.add(server.host);
    yield;
  }
  return names;
}
