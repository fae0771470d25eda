/** The fake-IP pools in the profile cache: a row for each name, and one row for the remaining state of a pool. */
import type { Ip } from "#core/session.ts";
import type { FakeIpState } from "#dns/fake-ip.ts";
import type { FakePoolState } from "#dns/fake-pool.ts";
import type { FakeIpBatch } from "#dns/journaled-pool.ts";
import { parseIp } from "#net/address/ip.ts";
import type { Bucket, ProfileCache } from "#store/profile-cache.ts";

/** Prefix of names, so that none can equal the key of the row with the remaining state. */
const NAME_MARK = "@";
const POOL_STATE = "pool";

/** Rows of before that are deleted in one turn of the event loop: some milliseconds. */
const MOST_STALE_AT_ONCE = 1_000;
const PAUSE_MS = 200;

export class FakeIpStore {
  readonly #cache: ProfileCache;
  /** Rows that are of no use any more, by their keys. */
  readonly #stale: Readonly<Record<FakeBucket, Set<string>>> = { fakeip: new Set(), fakeip6: new Set() };
  #closed = false;

  constructor(cache: ProfileCache) {
    this.#cache = cache;
  }

  load(): FakeIpState {
    return { v4: loadPool(this.#cache, "fakeip"), v6: loadPool(this.#cache, "fakeip6") };
  }

  /** Adds changes of a pool. */
  add({ family, range, isAnew, offset, cycle, pairs }: FakeIpBatch): void {
    if (this.#closed) return;
    const bucket = family === 4 ? "fakeip" : "fakeip6";
    const stale = this.#stale[bucket];
    if (isAnew || poolStateOf(this.#cache, bucket)?.range !== range)
      for (const [key] of this.#cache.entries(bucket)) stale.add(key);
    stale.delete(POOL_STATE);
    const changes = pairs.map(([host, ip]) => [NAME_MARK + host, ip] as const);
    for (const [key] of changes) stale.delete(key);
    this.#cache.setAll(bucket, [...changes, [POOL_STATE, JSON.stringify({ range, offset, cycle })]]);
    this.#forgetStale(bucket);
  }

  /** From here on nothing is written: the pools of another runtime count. */
  close(): void {
    this.#closed = true;
  }

  #forgetStale(bucket: FakeBucket): void {
    const stale = this.#stale[bucket];
    if (stale.size === 0 || this.#closed) return;
    const gone = [...stale.values().take(MOST_STALE_AT_ONCE)];
    for (const key of gone) stale.delete(key);
    this.#cache.setAll(
      bucket,
      gone.map((key) => [key, null]),
    );
    if (stale.size > 0) setTimeout(() => this.#forgetStale(bucket), PAUSE_MS).unref();
  }
}

type FakeBucket = Extract<Bucket, "fakeip" | "fakeip6">;

type PoolState = Omit<FakePoolState, "pairs">;

function loadPool(cache: ProfileCache, bucket: FakeBucket): FakePoolState | null {
  const rest = poolStateOf(cache, bucket);
  return rest === null ? null : { ...rest, pairs: storedPairs(cache, bucket) };
}

function* storedPairs(cache: ProfileCache, bucket: FakeBucket): Generator<readonly [string, Ip]> {
  for (const [key, value] of cache.entries(bucket)) {
    const ip = key.startsWith(NAME_MARK) ? parseIp(value) : null;
    if (ip !== null) yield [key.slice(NAME_MARK.length), ip];
  }
}

/** Null where nothing was stored, or nothing that makes sense: the pool starts over then. */
function poolStateOf(cache: ProfileCache, bucket: FakeBucket): PoolState | null {
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
