/** Which servers get a question, and which of two answers counts (dns.md §7.1). */
import { ABORTED } from "#core/errors.ts";
import type { Steps } from "#lib/steps.ts";
import type { DnsOptions } from "#core/dns-options.ts";
import type { Ip } from "#core/session.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { isLanIp, cidrOf } from "#net/address/cidr.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import { eachAnswer } from "./packet.ts";
import { anyOfInSteps, type NameSets, type NameTest, type PolicyTable } from "./policy.ts";
import type { Query } from "./query.ts";
import { raceUpstreams, type Won } from "./race.ts";
import { outgoingQuery } from "./edns.ts";
import { CLASS_IN, TYPE } from "./types.ts";
import type { Upstream } from "./upstream/upstream.ts";

/** Country code of an address; null: the database does not know it, or it is another one than was asked about. */
export type CountryOf = (ip: Ip) => string | null;

/** Asks the nameservers that the configuration prescribes. Rejects with `DialError` when all of them failed. */
export interface Strategy {
  ask(query: Query, signal: AbortSignal): Promise<Won>;
  /**
   * Which nameservers would be asked for an address of that name, and why: a policy's condition, `fallback-filter`, or
   * `nameserver`.
   */
  choose(host: string): { readonly by: string; readonly upstreams: readonly Upstream[] };
}

export interface StrategyParts {
  readonly main: readonly Upstream[];
  readonly policies: PolicyTable<readonly Upstream[]> | null;
  /** Null: no fallback. */
  readonly fallback: Fallback | null;
}

export interface Fallback {
  readonly upstreams: readonly Upstream[];
  /** Names that only the fallback may answer. */
  readonly only: NameTest;
  readonly isPolluted: (address: Uint8Array) => boolean;
  /** Ask the fallback only after the main answer was judged. */
  readonly lazy: boolean;
}

export function openStrategy({ main, policies, fallback }: StrategyParts): Strategy {
  const choose = (host: string) => {
    const policy = policies?.find(host) ?? null;
    if (policy !== null) return { by: policy.condition, upstreams: policy.value };
    if (fallback?.only(host) === true) return { by: "fallback-filter", upstreams: fallback.upstreams };
    return { by: "nameserver", upstreams: main };
  };
  return {
    choose,
    ask(query, signal) {
      const message = outgoingQuery(query);
      const addresses = query.class === CLASS_IN && ADDRESS_LIKE.has(query.type);
      const policy = policies?.find(query.name) ?? null;
      if (policy !== null) return raceUpstreams(policy.value, message, signal);
      if (!addresses || fallback === null) return raceUpstreams(main, message, signal);
      if (fallback.only(query.name)) return raceUpstreams(fallback.upstreams, message, signal);
      return askBoth(main, fallback, query, message, signal);
    },
  };
}

const ADDRESS_LIKE: ReadonlySet<number> = new Set([TYPE.A, TYPE.AAAA, TYPE.CNAME]);

async function askBoth(
  main: readonly Upstream[],
  fallback: Fallback,
  query: Query,
  message: Uint8Array,
  signal: AbortSignal,
): Promise<Won> {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const askFallback = () => raceUpstreams(fallback.upstreams, message, both);
  const second = fallback.lazy ? null : askFallback();
  second?.catch(() => {}); // awaited below, unless the main answer suffices
  try {
    const first = await raceUpstreams(main, message, signal).catch(() => null);
    if (first !== null && isGood(first, query, fallback)) return first;
    return await (second ?? askFallback());
  } finally {
    stop.abort(ABORTED);
  }
}

/** At least one address, and none of them polluted. */
function isGood({ packet }: Won, query: Query, { isPolluted }: Fallback): boolean {
  let addresses = 0;
  let polluted = false;
  eachAnswer(packet, query.type === TYPE.AAAA ? TYPE.AAAA : TYPE.A, (address) => {
    addresses++;
    polluted ||= isPolluted(address);
  });
  return addresses > 0 && !polluted;
}

/** `countryOf` null: nothing is judged by country. */
export function* openFallback(
  upstreams: readonly Upstream[],
  { fallbackFilter: filter, fallbackLazyQuery: lazy }: DnsOptions,
  sets: NameSets,
  countryOf: CountryOf | null,
): Steps<Fallback> {
  const only = yield* anyOfInSteps(
    [
      ...filter.domain.map((pattern) => ({ kind: "domain" as const, pattern })),
      ...filter.geosite.map((category) => ({ kind: "geosite" as const, category })),
    ],
    sets,
  );
  const networks = new CidrTable(filter.ipcidr.map(({ ip, bits }) => cidrOf(`${ip}/${bits}`)));
  const code = filter.geoipCode.toUpperCase();
  const isPolluted = (address: Uint8Array): boolean => {
    if (networks.holds(address)) return true;
    if (!filter.geoip || countryOf === null) return false;
    const ip = ipFromBytes(address);
    return !isLanIp(ip) && countryOf(ip)?.toUpperCase() !== code;
  };
  return { upstreams, only, isPolluted, lazy };
}
