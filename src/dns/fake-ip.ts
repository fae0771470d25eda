/** Fake-IP: both pools, which names get fake answers, and what is written down of it (dns.md §6). */
import type { DnsOptions } from "#core/dns-options.ts";
import { ConfigError } from "#core/errors.ts";
import type { Steps } from "#lib/steps.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { answerOf } from "./answer.ts";
import { FakePool, type FakePoolState, type OnPair } from "./fake-pool.ts";
import type { Packet } from "./packet.ts";
import { anyOfInSteps, firstRule, type NameSets, type NameTest } from "./policy.ts";
import type { Query } from "./query.ts";
import { CLASS_IN, TYPE } from "./types.ts";

export interface FakeIpState {
  readonly v4: FakePoolState | null;
  readonly v6: FakePoolState | null;
}

/** What changed since the last batch, in order. `ip` null: forgotten. */
export interface FakeIpBatch {
  readonly family: 4 | 6;
  /** What the store holds of another range is of no use any more. */
  readonly range: string;
  readonly offset: number;
  readonly cycle: boolean;
  readonly pairs: readonly (readonly [host: string, ip: Ip | null])[];
}

/** Takes batches to the store. Must not throw. */
export type PersistFakeIp = (batch: FakeIpBatch) => void;

const BATCH_MS = 200;
const FAKED: ReadonlySet<number> = new Set([TYPE.A, TYPE.AAAA, TYPE.HTTPS, TYPE.SVCB]);

export class FakeIp implements Disposable {
  readonly #v4: Journaled | null;
  readonly #v6: Journaled | null;
  readonly #isFaked: NameTest;
  readonly #ttlSeconds: number;

  /** Throws `ConfigError`. `persist` null: nothing is written down. */
  constructor(options: DnsOptions, filtered: NameTest, persist: PersistFakeIp | null) {
    const { fakeIpRange, fakeIpRange6, ipv6, nameserver, fallback } = options;
    const range6 = ipv6 ? fakeIpRange6 : null;
    if (fakeIpRange === null && range6 === null)
      throw new ConfigError("dns: enhanced-mode fake-ip needs fake-ip-range or fake-ip-range6");
    this.#v4 = fakeIpRange === null ? null : new Journaled(4, (on) => new FakePool(fakeIpRange, on), persist);
    this.#v6 = range6 === null ? null : new Journaled(6, (on) => new FakePool(range6, on), persist);
    const upstreams = new Set([...nameserver, ...fallback].map(({ host }) => host));
    this.#isFaked = (host) => host !== "" && !upstreams.has(host) && filtered(host);
    this.#ttlSeconds = Math.max(1, options.fakeIpTtlSeconds);
  }

  /** Null where the question goes to the real resolver. */
  answer(query: Query): Packet | null {
    if (query.class !== CLASS_IN || !FAKED.has(query.type) || !this.#isFaked(query.name)) return null;
    const pool = query.type === TYPE.A ? this.#v4 : query.type === TYPE.AAAA ? this.#v6 : null;
    if (pool === null) return answerOf(query, []);
    const data = bytesOfIp(pool.pool.allocate(query.name));
    return answerOf(query, [{ type: query.type, ttl: this.#ttlSeconds, data }]);
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

  exportState(): FakeIpState {
    return { v4: this.#v4?.pool.exportState() ?? null, v6: this.#v6?.pool.exportState() ?? null };
  }

  importState({ v4, v6 }: FakeIpState): void {
    if (v4 !== null) this.#v4?.pool.importState(v4);
    if (v6 !== null) this.#v6?.pool.importState(v6);
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

/** A pool and its changes that are not written yet. */
class Journaled {
  readonly pool: FakePool;
  readonly #family: 4 | 6;
  readonly #persist: PersistFakeIp | null;
  /** Bounded by the pool: a name has one entry, the latest. */
  readonly #changes = new Map<string, Ip | null>();
  #timer: NodeJS.Timeout | null = null;

  constructor(family: 4 | 6, open: (on: OnPair) => FakePool, persist: PersistFakeIp | null) {
    this.#family = family;
    this.#persist = persist;
    this.pool = open((host, ip) => this.#note(host, ip));
  }

  write(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#changes.size === 0) return;
    const { range, offset, cycle } = this.pool;
    this.#persist?.({ family: this.#family, range, offset, cycle, pairs: [...this.#changes] });
    this.#changes.clear();
  }

  #note(host: string, ip: Ip | null): void {
    if (this.#persist === null) return;
    this.#changes.delete(host);
    this.#changes.set(host, ip);
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => this.write(), BATCH_MS);
    this.#timer.unref();
  }
}
