/** Answers kept by question (dns.md §8). Bounded by entries and by bytes; the oldest go first. */
import { isTruncated, type Packet } from "./packet.ts";
import { RCODE, TYPE } from "./types.ts";
import { ArcStore, LruStore, type Store } from "./store.ts";
import type { Query } from "./query.ts";

/** A packet and how much younger it once was: every TTL is lowered by `takeSeconds`, but never below 1. */
export interface Aged {
  readonly packet: Packet;
  readonly takeSeconds: number;
}

export interface CacheHit extends Aged {
  /** Out of date: answer with it, but ask again. */
  readonly stale: boolean;
}

export interface CacheOptions {
  readonly algorithm: "lru" | "arc";
  readonly maxEntries: number;
}

/** In the cache, and not out of date. */
export interface KeptAnswer {
  readonly packet: Packet;
  readonly expiresAtMs: number;
}

interface Entry extends KeptAnswer {
  readonly lifetimeSeconds: number;
}

/** Takes every TTL down to 1. */
const ALL = 0xffffffff;
const SERVFAIL_SECONDS = 5;
/** An answer that ended longer ago is not shown any more. */
const MAX_STALE_MS = 86_400_000;
/** Per entry on average; an ordinary answer has 100 to 500 bytes. */
const BYTES_PER_ENTRY = 2048;
const ENTRY_OVERHEAD_BYTES = 256;

export class AnswerCache {
  readonly #store: Store<Entry>;
  readonly #nowMs: () => number;

  constructor({ algorithm, maxEntries }: CacheOptions, nowMs: () => number) {
    const bounds = { entries: maxEntries, bytes: Math.max(1 << 20, maxEntries * BYTES_PER_ENTRY) };
    this.#store = algorithm === "arc" ? new ArcStore(bounds) : new LruStore(bounds);
    this.#nowMs = nowMs;
  }

  get(key: string): CacheHit | null {
    const entry = this.#store.get(key);
    if (entry === undefined) return null;
    const leftMs = entry.expiresAtMs - this.#nowMs();
    const wasSetBack = leftMs > entry.lifetimeSeconds * 1000; // the clock was set back: the age of the answer is unknown
    if (leftMs > 0 && !wasSetBack) {
      const left = Math.max(1, Math.ceil(leftMs / 1000));
      return { packet: entry.packet, takeSeconds: Math.max(0, entry.lifetimeSeconds - left), stale: false };
    }
    // A failure that is over is no answer at all.
    if (leftMs < -MAX_STALE_MS || entry.packet.rcode === RCODE.SERVFAIL) return null;
    return { packet: entry.packet, takeSeconds: ALL, stale: true };
  }

  /** Null: it has none that is not out of date. */
  kept(key: string): KeptAnswer | null {
    return this.get(key)?.stale === false ? (this.#store.get(key) ?? null) : null;
  }

  put(query: Query, packet: Packet): void {
    const lifetimeSeconds = lifetimeOf(query, packet);
    if (lifetimeSeconds === 0) return;
    const expiresAtMs = this.#nowMs() + lifetimeSeconds * 1000;
    const sizeBytes = packet.bytes.length + query.key.length + ENTRY_OVERHEAD_BYTES;
    this.#store.set(query.key, { packet, lifetimeSeconds, expiresAtMs }, sizeBytes);
  }

  clear(): void {
    this.#store.clear();
  }

  get size(): number {
    return this.#store.size;
  }
}

function lifetimeOf({ name, type }: Query, { bytes, rcode, minTtl }: Packet): number {
  // A certificate authority looks for the newest text; an old one fails the order.
  if (type === TYPE.TXT && name.startsWith("_acme-challenge.")) return 0;
  if (rcode === RCODE.SERVFAIL) return SERVFAIL_SECONDS;
  // A truncated answer is only for the client that asked, and is not cached (RFC 2181 §9).
  return isTruncated(bytes) ? 0 : minTtl;
}
