/** Fake-IP: both pools, which names get fake answers, and what is written down of it (dns.md §6). */
import type { DnsOptions } from "#core/dns-options.ts";
import { ConfigError } from "#core/errors.ts";
import type { Steps } from "#lib/steps.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { NamedRange } from "#net/address/named-addresses.ts";
import { answerOf } from "./answer.ts";
import type { FakePoolState } from "./fake-pool.ts";
import { JournaledPool, type AllocateElsewhere, type PersistFakeIp } from "./journaled-pool.ts";
import type { Packet } from "./packet.ts";
import { anyOfInSteps, firstRule, type NameSets, type NameTest } from "./policy.ts";
import type { Query } from "./query.ts";
import { CLASS_IN, TYPE } from "./types.ts";

/** As they were stored, or are in another process. */
export interface FakeIpState {
  readonly v4: FakePoolState | null;
  readonly v6: FakePoolState | null;
}

const FAKED: ReadonlySet<number> = new Set([TYPE.A, TYPE.AAAA, TYPE.HTTPS, TYPE.SVCB]);

export class FakeIp implements Disposable {
  #v4: JournaledPool | null;
  #v6: JournaledPool | null;
  readonly #persist: PersistFakeIp | null;
  readonly #isFaked: NameTest;
  readonly #ttlSeconds: number;

  /** Throws `ConfigError`. `persist` null: nothing is written down. */
  constructor(options: DnsOptions, filtered: NameTest, persist: PersistFakeIp | null) {
    const { fakeIpRange, fakeIpRange6, ipv6, nameserver, fallback } = options;
    const range6 = ipv6 ? fakeIpRange6 : null;
    if (fakeIpRange === null && range6 === null)
      throw new ConfigError("dns: enhanced-mode fake-ip needs fake-ip-range or fake-ip-range6");
    this.#v4 = fakeIpRange === null ? null : new JournaledPool(4, fakeIpRange, persist);
    this.#v6 = range6 === null ? null : new JournaledPool(6, range6, persist);
    this.#persist = persist;
    const upstreams = new Set([...nameserver, ...fallback].map(({ host }) => host));
    this.#isFaked = (host) => host !== "" && !upstreams.has(host) && filtered(host);
    this.#ttlSeconds = options.fakeIpTtlSeconds;
  }

  /** Null where the question goes to the real resolver. Rejects where another process gives addresses out, and gives none. */
  answer(query: Query): Packet | Promise<Packet> | null {
    if (query.class !== CLASS_IN || !FAKED.has(query.type) || !this.#isFaked(query.name)) return null;
    const pool = query.type === TYPE.A ? this.#v4 : query.type === TYPE.AAAA ? this.#v6 : null;
    if (pool === null) return answerOf(query, []);
    const ip = pool.addressOf(query.name);
    return ip instanceof Promise
      ? ip.then((found) => this.#answerWith(query, found))
      : this.#answerWith(query, ip);
  }

  #answerWith(query: Query, ip: Ip): Packet {
    return answerOf(query, [{ type: query.type, ttl: this.#ttlSeconds, data: bytesOfIp(ip) }]);
  }

  /** The address of a name, for another process. Null: there are none of this family. Rejects as `answer`. */
  async allocate(family: 4 | 6, host: string): Promise<Ip | null> {
    return (await (family === 4 ? this.#v4 : this.#v6)?.addressOf(host)) ?? null;
  }

  /** What the pools are when another process begins to give out their addresses. */
  giveTo(elsewhere: AllocateElsewhere): FakeIpState {
    return { v4: this.#v4?.giveTo(elsewhere) ?? null, v6: this.#v6?.giveTo(elsewhere) ?? null };
  }

  takeBack(): void {
    this.#v4?.takeBack();
    this.#v6?.takeBack();
  }

  /** The pools of another process become these, as far as the ranges are the same. */
  *become({ v4, v6 }: FakeIpState): Steps<void> {
    if (this.#v4 !== null && v4 !== null) yield* this.#v4.pool.become(v4);
    if (this.#v6 !== null && v6 !== null) yield* this.#v6.pool.become(v6);
  }

  /** Of both families, for other threads. */
  get named(): readonly NamedRange[] {
    return [this.#v4, this.#v6].flatMap((one) => (one === null ? [] : [one.pool.named]));
  }

  isFaked(host: string): boolean {
    return this.#isFaked(host);
  }

  hostOf(ip: Ip): string | null {
    return this.#v4?.pool.hostOf(ip) ?? this.#v6?.pool.hostOf(ip) ?? null;
  }

  isFake(ip: Ip): boolean {
    return (this.#v4?.pool.isFake(ip) ?? false) || (this.#v6?.pool.isFake(ip) ?? false);
  }

  flush(): void {
    this.#v4?.pool.flush();
    this.#v6?.pool.flush();
  }

  /** Into pools that are empty. */
  *restore({ v4, v6 }: FakeIpState): Steps<void> {
    if (this.#v4 !== null && v4 !== null) yield* this.#v4.pool.restore(v4);
    if (this.#v6 !== null && v6 !== null) yield* this.#v6.pool.restore(v6);
  }

  /**
   * Goes on with the pools of the engine before, as far as the ranges are the same: clients continue to use the addresses
   * that they were given. The other one keeps them for the questions that it is answering.
   */
  takeOver(before: FakeIp): void {
    this.#v4 = successor(this.#v4, before.#v4);
    this.#v6 = successor(this.#v6, before.#v6);
    for (const pool of [this.#v4, this.#v6]) pool?.persistTo(this.#persist);
  }

  /** Hands the last batch over. */
  [Symbol.dispose](): void {
    this.#v4?.write();
    this.#v6?.write();
  }
}

/** Is a name faked, as far as `fake-ip-filter` says? Throws `ConfigError`. */
export function* fakeIpFilter(options: DnsOptions, sets: NameSets): Steps<NameTest> {
  if (options.fakeIpFilterMode === "rule") return yield* firstRule(options.fakeIpRules, sets);
  const listed = yield* anyOfInSteps(options.fakeIpFilter, sets);
  return options.fakeIpFilterMode === "whitelist" ? listed : (host) => !listed(host);
}

function successor(own: JournaledPool | null, before: JournaledPool | null): JournaledPool | null {
  return own !== null && before !== null && own.pool.range === before.pool.range ? before : own;
}
