/** The fake-IP pools in the profile cache: a row for each name, and one row for the remaining state of a pool. */
import type { Dns, DnsState } from "#dns/dns.ts";
import type { FakeIpBatch, FakeIpState } from "#dns/fake-ip.ts";
import type { FakePoolState } from "#dns/fake-pool.ts";
import { parseIp } from "#net/address/ip.ts";
import type { Bucket, ProfileCache } from "#store/profile-cache.ts";

/** Prefix of names, so that none can equal the key of the row with the remaining state. */
const NAME_MARK = "@";
const POOL_STATE = "pool";

export class FakeIpStore {
  readonly #cache: ProfileCache;
  #closed = false;

  constructor(cache: ProfileCache) {
    this.#cache = cache;
  }

  load(): FakeIpState {
    return { v4: loadPool(this.#cache, "fakeip"), v6: loadPool(this.#cache, "fakeip6") };
  }

  /** Makes the store say what the pools say; costs little where it does already. */
  replace({ v4, v6 }: FakeIpState): void {
    if (v4 !== null) this.#replacePool("fakeip", v4);
    if (v6 !== null) this.#replacePool("fakeip6", v6);
  }

  /** Adds changes of a pool. */
  add({ family, range, offset, cycle, pairs }: FakeIpBatch): void {
    if (this.#closed) return;
    const bucket = family === 4 ? "fakeip" : "fakeip6";
    const changes = pairs.map(([host, ip]) => [NAME_MARK + host, ip] as const);
    const others = poolStateOf(this.#cache, bucket)?.range === range ? [] : forgotten(this.#cache, bucket);
    this.#cache.setAll(bucket, [
      ...others,
      ...changes,
      [POOL_STATE, JSON.stringify({ range, offset, cycle })],
    ]);
  }

  /** From here on nothing is written: the pools of another runtime count. */
  close(): void {
    this.#closed = true;
  }

  #replacePool(bucket: Bucket, { range, offset, cycle, pairs }: FakePoolState): void {
    const gone = new Map(forgotten(this.#cache, bucket));
    for (const [host] of pairs) gone.delete(NAME_MARK + host);
    const kept = pairs.map(([host, ip]) => [NAME_MARK + host, ip] as const);
    this.#cache.setAll(bucket, [...gone, ...kept, [POOL_STATE, JSON.stringify({ range, offset, cycle })]]);
  }
}

/**
 * Hands the known addresses to a new engine: `before` of the runtime that it replaces, else the stored ones. Clients
 * continue to use the addresses that they were given.
 */
export function carryOver(dns: Dns, before: DnsState | null, store: FakeIpStore | null): void {
  const known = before?.fakeIp ?? null;
  dns.importState({ fakeIp: known ?? store?.load() ?? null, mapping: before?.mapping ?? [] });
  const now = known === null || store === null ? null : dns.exportState().fakeIp;
  if (now !== null) store?.replace(now);
}

type PoolState = Omit<FakePoolState, "pairs">;

function loadPool(cache: ProfileCache, bucket: Bucket): FakePoolState | null {
  const rest = poolStateOf(cache, bucket);
  if (rest === null) return null;
  const pairs = cache.entries(bucket).flatMap(([key, value]) => {
    const ip = key.startsWith(NAME_MARK) ? parseIp(value) : null;
    return ip === null ? [] : [[key.slice(NAME_MARK.length), ip] as const];
  });
  return { ...rest, pairs };
}

/** Null where nothing was stored, or nothing that makes sense: the pool starts over then. */
function poolStateOf(cache: ProfileCache, bucket: Bucket): PoolState | null {
  const text = cache.get(bucket, POOL_STATE);
  if (text === null) return null;
  try {
    const { range, offset, cycle }: Partial<PoolState> = JSON.parse(text);
    return typeof range === "string" && typeof offset === "number"
      ? { range, offset, cycle: cycle === true }
      : null;
  } catch {
    return null; // written by hand, or by another program
  }
}

function forgotten(cache: ProfileCache, bucket: Bucket): readonly (readonly [string, null])[] {
  return cache.entries(bucket).map(([key]) => [key, null] as const);
}
