/** What made-up names lead to, by the resolvers of the program behind a made-up server, repeatable by the seed. */
import type { Ip } from "#core/session.ts";
import { SILENT } from "#core/log.ts";
import { answerOf } from "#dns/answer.ts";
import { CachingResolver } from "#dns/caching-resolver.ts";
import type { Hosts } from "#dns/hosts.ts";
import { openLookup } from "#dns/lookup.ts";
import { prepareDestination } from "#dns/prepare.ts";
import type { Query } from "#dns/query.ts";
import { SharedAnswers } from "#dns/shared-answers.ts";
import { TYPE } from "#dns/types.ts";
import { choiceOf, type Families, type IpVersion } from "#net/address/families.ts";
import { bytesOfIp, familyOf } from "#net/address/ip.ts";
import { randomFrom } from "./random.ts";
import { ip } from "./routing.ts";

const VERSIONS: readonly IpVersion[] = ["dual", "ipv4", "ipv6", "ipv4-prefer", "ipv6-prefer"];

/** A number from the text alone. */
function numberOf(text: string): number {
  let sum = 7;
  for (const letter of text) sum = (Math.imul(sum, 31) + letter.charCodeAt(0)) >>> 0;
  return sum;
}

/** No, one or two addresses, and none at all for some names; failures of the server, too. */
function addressesOf(seed: number, { name, type }: Query): readonly Ip[] {
  const below = randomFrom(numberOf(`${seed} ${name} ${type}`));
  const count = below(4) === 0 ? 0 : 1 + below(2);
  const one = (): string => (type === TYPE.AAAA ? `2001:db8::${below(8)}` : `203.0.${below(3)}.${below(8)}`);
  return Array.from({ length: count }, () => ip(one()));
}

/** Names of a rule set: the resolver of rules, that of DIRECT (another one for some seeds), and the hosts table. */
export function randomNames(seed: number) {
  const below = randomFrom(seed * 104_729 + 11);
  const answers = new SharedAnswers(Date.now);
  const hosts: Hosts = {
    find(host) {
      const at = numberOf(`${seed} hosts ${host}`) % 16;
      const pinned = [ip(`203.0.1.${at}`), ip(`2001:db8::${at}`), ip("203.0.2.1")].slice(0, at);
      if (at === 4) return { name: "one.test", addresses: null };
      return at === 0 || at > 3 || host === "one.test" ? null : { name: host, addresses: pinned };
    },
  };
  const ipv6 = below(3) > 0;
  /** Does the resolver keep answers for it? */
  const isKept = (host: string) => numberOf(`${seed} kept ${host}`) % 8 > 0;
  const open = (salt: number) => {
    const ask = (query: Query) => {
      const [family, size] = query.type === TYPE.AAAA ? ([28, 16] as const) : ([1, 4] as const);
      const found = addressesOf(seed + salt, query).map((one) => bytesOfIp(one));
      const records = found
        .filter(({ length }) => length === size)
        .map((data) => ({ type: family, ttl: 60, data }));
      const other = { type: TYPE.TXT, ttl: 60, data: Uint8Array.of(1, 65) }; // without any record it would not be kept
      return Promise.resolve({ packet: answerOf(query, [...records, other]), keep: isKept(query.name) });
    };
    const strategy = { ask, choose: () => ({ by: "nameserver", upstreams: [] }) };
    const cache = { algorithm: "lru", maxEntries: 64 } as const;
    const resolver = new CachingResolver({ role: "main", strategy, cache, log: SILENT, nowMs: Date.now });
    const more = { ipv6TimeoutMs: 100, isUpstream: () => false, upstreamResolver: null, shared: answers };
    return openLookup({ resolver, hosts, ipv6, ...more });
  };
  const resolver = open(0);
  const families: Families = { ipVersion: VERSIONS[below(VERSIONS.length)] ?? "dual", ipv6 };
  const direct = below(4) === 0 ? open(1) : resolver;
  return {
    resolver,
    direct,
    families,
    known: answers.memory,
    isKept,
    /** Those usable addresses that the hosts table has for it, if workers are told them. */
    pinned: (host: string): readonly Ip[] => {
      const found = hosts.find(host)?.addresses ?? [];
      const v4 = found.filter((one) => familyOf(one) === 4);
      const usable = ipv6 || v4.length === 0 ? found : v4;
      return usable.length === 1 || v4.length === usable.length ? usable : [];
    },
    /** How a worker finds what DIRECT dials. */
    choice: direct.shared === undefined ? null : { ...direct.shared, ...choiceOf(families), timeoutMs: 250 },
    prepare: (destination: Parameters<typeof prepareDestination>[0]) => {
      const env = { mode: "normal", fakeIp: null, mapping: null, hosts, answers, ipv6 } as const;
      return prepareDestination(destination, env);
    },
  };
}

export type RandomNames = ReturnType<typeof randomNames>;
