/** Look-ups by the core itself: names to literal addresses (dns.md §7.3). */
import { DialError, messageOf } from "#core/errors.ts";
import type { Answer, LookupOptions, Resolver } from "#core/resolver.ts";
import type { Ip } from "#core/session.ts";
import { familyOf, ipFromBytes, parseIp } from "#net/address/ip.ts";
import type { Aged } from "./cache.ts";
import type { CachingResolver } from "./caching-resolver.ts";
import { lookUpEch } from "./ech-lookup.ts";
import { type Hosts, HOSTS_TTL_SECONDS } from "./hosts.ts";
import { canonicalName } from "./name.ts";
import { eachAnswer } from "./packet.ts";
import { encodeQuestion, QueryReader } from "./query.ts";
import type { SharedAnswers } from "./shared-answers.ts";
import { CLASS_IN, TYPE } from "./types.ts";

/**
 * Rules must see the name that is looked up: an escape (`\097`) would be a byte that they did not see, and of two last dots one
 * would be overlooked.
 */
const PLAIN_NAME = /^(?!.*\.\.)[\x21-\x5b\x5d-\x7e]+$/;

export interface LookupEnv {
  readonly resolver: CachingResolver;
  /** Null: no hosts table is asked. */
  readonly hosts: Hosts | null;
  readonly ipv6: boolean;
  readonly ipv6TimeoutMs: number;
  /** Names of DNS servers; asking one of them for its own address would wait for itself. */
  readonly isUpstream: (host: string) => boolean;
  /** Answers for those. */
  readonly upstreamResolver: Resolver | null;
  /** Other threads find its answers there; null: they are for this one alone. */
  readonly shared: SharedAnswers | null;
}

export function openLookup(env: LookupEnv): Resolver {
  const number = env.shared?.newNumber() ?? 0;
  const lookup = new Lookup(env, number);
  return {
    ...(number === 0 ? {} : { shared: { number, ipv6: env.ipv6 } }),
    lookup: (host, options) => asLookup(host, options.signal, () => lookup.find(host, options)),
    echConfigs: (host, signal) =>
      asLookup(host, signal, () => lookUpEch(env.resolver, plainName(host), signal)),
  };
}

/** Whatever fails is a `DialError`. */
async function asLookup<Found>(
  host: string,
  signal: AbortSignal,
  find: () => Promise<Found>,
): Promise<Found> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof DialError) throw error;
    const reason = signal.aborted ? "aborted" : "resolve";
    throw new DialError(reason, `${host}: ${messageOf(error)}`, { cause: error });
  }
}

function plainName(text: string): string {
  if (PLAIN_NAME.test(text)) return text;
  throw new DialError("resolve", `${JSON.stringify(text)} is no host name`);
}

class Lookup {
  readonly #env: LookupEnv;
  readonly #reader = new QueryReader();

  readonly #number: number;

  /** `number`: of the resolver among those whose answers are shared. */
  constructor(env: LookupEnv, number: number) {
    this.#env = env;
    this.#number = number;
  }

  async find(text: string, options: LookupOptions): Promise<readonly Answer[]> {
    const { family, signal } = options;
    const literal = parseIp(text);
    if (literal !== null) return ofFamily(text, [{ ip: literal, ttlMs: 0 }], family);
    plainName(text);
    if (family === 6 && !this.#env.ipv6) throw new DialError("resolve", `${text}: ipv6 disabled`);
    const listed = this.#env.hosts?.find(canonicalName(text)) ?? null;
    const pinned = listed?.addresses ?? null;
    if (pinned !== null) return ofFamily(text, fromHosts(pinned), family);
    const host = listed?.name ?? canonicalName(text);
    const { upstreamResolver, isUpstream } = this.#env;
    if (upstreamResolver !== null && isUpstream(host)) return upstreamResolver.lookup(host, options);
    if (family !== undefined) return nonEmpty(host, await this.#one(host, family, signal));
    if (!this.#env.ipv6) return nonEmpty(host, await this.#one(host, 4, signal));
    return this.#dual(host, signal);
  }

  async #one(host: string, family: 4 | 6, signal: AbortSignal): Promise<readonly Answer[]> {
    const type = family === 4 ? TYPE.A : TYPE.AAAA;
    const query = this.#reader.read(encodeQuestion(host, type));
    if (query === null || query.class !== CLASS_IN) throw new DialError("resolve", `${host}: no question`);
    const answer = await this.#env.resolver.answer(query, signal);
    this.#share(host, type, query.key);
    return addressesIn(answer, type);
  }

  /** The hosts table is asked again, for it may have changed since the question. */
  #share(host: string, type: number, key: string): void {
    const { shared, hosts, resolver } = this.#env;
    const kept = shared === null ? null : resolver.kept(key);
    if (kept === null || (hosts?.find(host) ?? null) !== null) return;
    shared?.put(this.#number, host, type, kept);
  }

  /** Both at once. Once A is there AAAA has little time left; where A failed AAAA may take all of it. */
  async #dual(host: string, signal: AbortSignal): Promise<readonly Answer[]> {
    const v6 = this.#one(host, 6, signal);
    v6.catch(() => {}); // awaited below, unless its time runs out
    let v4: readonly Answer[];
    try {
      v4 = await this.#one(host, 4, signal);
    } catch (error) {
      const found = await v6.catch(() => []);
      if (found.length === 0) throw error;
      return found;
    }
    if (v4.length === 0) return nonEmpty(host, await v6);
    return [...v4, ...(await within(v6, this.#env.ipv6TimeoutMs))];
  }
}

function addressesIn(aged: Aged, type: number): readonly Answer[] {
  const answers: Answer[] = [];
  eachAnswer(aged.packet, type, (address, ttl) => {
    const seconds = aged.takeSeconds === 0 ? ttl : Math.max(1, ttl - aged.takeSeconds);
    answers.push({ ip: ipFromBytes(address), ttlMs: seconds * 1000 });
  });
  return answers;
}

/** In random order: clients that take the first address spread their load. */
function fromHosts(addresses: readonly Ip[]): readonly Answer[] {
  const start = Math.floor(Math.random() * addresses.length);
  const turned = [...addresses.slice(start), ...addresses.slice(0, start)];
  turned.sort((a, b) => familyOf(a) - familyOf(b));
  return turned.map((ip) => ({ ip, ttlMs: HOSTS_TTL_SECONDS * 1000 }));
}

function ofFamily(host: string, answers: readonly Answer[], family: 4 | 6 | undefined): readonly Answer[] {
  return nonEmpty(host, family === undefined ? answers : answers.filter(({ ip }) => familyOf(ip) === family));
}

function nonEmpty(host: string, answers: readonly Answer[]): readonly Answer[] {
  if (answers.length === 0) throw new DialError("resolve", `${host}: couldn't find ip`);
  return answers;
}

async function within(answers: Promise<readonly Answer[]>, timeoutMs: number): Promise<readonly Answer[]> {
  const { promise: late, resolve } = Promise.withResolvers<readonly Answer[]>();
  const timer = setTimeout(() => resolve([]), timeoutMs);
  try {
    return await Promise.race([answers.catch(() => []), late]);
  } finally {
    clearTimeout(timer);
  }
}
