/** Look-ups while the `dns` section is off: the system's servers and the hosts tables. */
import { DialError } from "#core/errors.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Destination } from "#core/session.ts";
import { parseNameserver } from "#net/dial/nameserver.ts";
import { CachingResolver } from "./caching-resolver.ts";
import type { SystemEnv } from "./env.ts";
import { openHosts } from "./hosts.ts";
import { openLookup } from "./lookup.ts";
import { prepareDestination, type Prepared } from "./prepare.ts";
import { SharedAnswers } from "./shared-answers.ts";
import { openStrategy } from "./strategy.ts";
import { UpstreamPool } from "./upstream/index.ts";

/** What the core uses while `dns.enable` is false. */
export interface SystemDns extends AsyncDisposable {
  readonly resolver: Resolver;
  /** Hosts still count for what is dialled. */
  prepare(destination: Destination): Prepared;
  /** As `Dns.knownNames`. */
  readonly knownNames: SharedArrayBuffer;
  flushCache(): void;
  networkChanged(): void;
}

export async function openSystemDns(env: SystemEnv): Promise<SystemDns> {
  const { log, nowMs, slices } = env;
  const answers = new SharedAnswers(nowMs, env.nameTables);
  const hosts = await openHosts({
    entries: env.hosts,
    systemFile: env.hostsFile,
    nowMs,
    slices,
    watcher: answers,
  });
  const pool = new UpstreamPool(env);
  const system = pool.open(
    parseNameserver("system", () => {}),
    { lookup: (host) => Promise.reject(new DialError("resolve", `${host} is no address`)) },
  );
  const role = new CachingResolver({
    role: "system",
    strategy: openStrategy({ main: [system], policies: null, fallback: null }),
    cache: { algorithm: "lru", maxEntries: 4096 },
    log,
    nowMs,
  });
  const isUpstream = () => false;
  const resolver = openLookup({
    resolver: role,
    hosts,
    ipv6: env.ipv6,
    ipv6TimeoutMs: 100,
    isUpstream,
    upstreamResolver: null,
    shared: answers,
  });
  const flushCache = () => {
    role.flush();
    answers.changed();
  };
  return {
    resolver,
    prepare: (destination) =>
      prepareDestination(destination, {
        mode: "normal",
        fakeIp: null,
        mapping: null,
        hosts,
        answers,
        ipv6: env.ipv6,
      }),
    knownNames: answers.memory,
    flushCache,
    networkChanged() {
      flushCache();
      pool.reset();
    },
    async [Symbol.asyncDispose]() {
      role[Symbol.dispose]();
      await pool[Symbol.asyncDispose]();
      answers[Symbol.dispose]();
    },
  };
}
