/** One resolver role: its cache, the merging of equal questions, refreshing and asking again (dns.md §7, §8). */
import { DialError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { PassingMap } from "#lib/passing-map.ts";
import { bareAnswer } from "./answer.ts";
import { AnswerCache, type Aged, type CacheHit, type CacheOptions, type KeptAnswer } from "./cache.ts";
import { withDeadline } from "./deadline.ts";
import type { Packet } from "./packet.ts";
import type { Query } from "./query.ts";
import { allRefused } from "./race.ts";
import type { Strategy } from "./strategy.ts";
import { RCODE } from "./types.ts";
import { abortion } from "./upstream/wire.ts";

export interface CachingResolverEnv {
  /** For logs: main, proxy, direct, default. */
  readonly role: string;
  readonly strategy: Strategy;
  readonly cache: CacheOptions;
  readonly log: Log;
  readonly nowMs: () => number;
}

const SET_TIMEOUT_MS = 5000;
/**
 * At the bound the lookup that has waited longest is given up. Beside a flood of slow questions that is hardly ever an
 * honest one, because those are answered quickly.
 */
const MAX_RUNNING = 4096;
/** Pauses before a failed question is asked again for the cache alone. */
const RETRY_PAUSES_MS = [1000, 2000, 4000];
/** Questions waiting to be asked again; at the bound a failed one is not asked again. */
const MAX_RETRIES = 64;

interface Running {
  readonly answer: Promise<Packet>;
  /** Ends it; each has its own, for one signal would walk over all its listeners with each new one. */
  readonly stop: AbortController;
  shared: boolean;
}

export class CachingResolver implements Disposable {
  readonly strategy: Strategy;
  readonly #env: CachingResolverEnv;
  readonly #cache: AnswerCache;
  /** In the order in which they were asked. */
  readonly #running = new PassingMap<string, Running>();
  readonly #retries = new Set<NodeJS.Timeout>();
  #closed = false;

  constructor(env: CachingResolverEnv) {
    this.strategy = env.strategy;
    this.#env = env;
    this.#cache = new AnswerCache(env.cache, env.nowMs);
  }

  /** What is known already; a stale answer starts a refresh. */
  cached(query: Query): CacheHit | null {
    const hit = this.#cache.get(query.key);
    if (hit?.stale === true) this.#refresh(query);
    return hit;
  }

  /** Null: the next who asks for it may get another answer. */
  kept(key: string): KeptAnswer | null {
    return this.#cache.kept(key);
  }

  has(key: string): boolean {
    return this.#cache.get(key) !== null;
  }

  /**
   * `signal` ends the wait, not the question: its answer goes to the cache and to others who wait. Null: the wait lasts as
   * long as the question is under way, `SET_TIMEOUT_MS` at most, and needs no timer and no listener of its own.
   */
  async answer(query: Query, signal: AbortSignal | null): Promise<Aged> {
    const hit = this.cached(query);
    if (hit !== null) return hit;
    const { answer } = this.#join(query);
    if (signal === null) return { packet: await answer, takeSeconds: 0 };
    const waiting = abortion(signal);
    try {
      return { packet: await Promise.race([answer, waiting.aborted]), takeSeconds: 0 };
    } finally {
      waiting.release();
    }
  }

  flush(): void {
    this.#cache.clear();
  }

  get size(): number {
    return this.#cache.size;
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const { stop } of this.#running.values()) stop.abort(closedError());
    for (const timer of this.#retries) clearTimeout(timer);
    this.#retries.clear();
  }

  #join(query: Query): Running {
    const running = this.#running.get(query.key);
    if (running !== undefined) {
      running.shared = true;
      return running;
    }
    const started = this.#start(query);
    started.answer.catch(() => this.#retryLater(query, started, 0));
    return started;
  }

  #start(query: Query): Running {
    if (this.#running.size >= MAX_RUNNING) this.#giveWay();
    const stop = new AbortController();
    if (this.#closed) stop.abort(closedError());
    const running: Running = { answer: this.#ask(query, stop), stop, shared: false };
    this.#running.set(query.key, running);
    return running;
  }

  #giveWay(): void {
    const [oldest = ""] = this.#running.keys();
    const running = this.#running.get(oldest);
    this.#running.delete(oldest);
    running?.stop.abort(new DialError("failed", "too many DNS questions at once"));
  }

  async #ask(query: Query, stop: AbortController): Promise<Packet> {
    const late = () => new DialError("timeout", `no answer for ${query.name} within ${SET_TIMEOUT_MS} ms`);
    try {
      const ask = (signal: AbortSignal) => this.#env.strategy.ask(query, signal);
      const { packet, keep } = await withDeadline(stop.signal, SET_TIMEOUT_MS, late, ask);
      if (keep) this.#cache.put(query, packet);
      return packet;
    } catch (error) {
      // What is known, though out of date, is better than the failure to renew it.
      if (allRefused(error) && this.#cache.get(query.key) === null)
        this.#cache.put(query, bareAnswer(query, RCODE.SERVFAIL));
      throw error;
    } finally {
      // One that gave way may have been asked again.
      if (this.#running.get(query.key)?.stop === stop) this.#running.delete(query.key);
    }
  }

  #refresh(query: Query): void {
    if (this.#running.has(query.key)) return;
    this.#start(query).answer.catch((error: unknown) => {
      this.#env.log.debug(
        () => `[DNS] ${this.#env.role}: refreshing ${query.name} failed: ${messageOf(error)}`,
      );
    });
  }

  /** The client got no answer and will probably ask again: try to have one in the cache by then. */
  #retryLater(query: Query, failed: Running, round: number): void {
    const pauseMs = RETRY_PAUSES_MS[round];
    if (pauseMs === undefined || failed.shared || this.#closed || this.#retries.size >= MAX_RETRIES) return;
    const timer = setTimeout(() => {
      this.#retries.delete(timer);
      const known = this.#cache.get(query.key);
      if (this.#running.has(query.key) || (known !== null && known.packet.rcode !== RCODE.SERVFAIL)) return;
      const again = this.#start(query);
      again.answer.catch(() => this.#retryLater(query, again, round + 1));
    }, pauseMs);
    timer.unref();
    this.#retries.add(timer);
  }
}

const closedError = () => new DialError("aborted", "the resolver is closed");
