/**
 * The worker's side of cached routes: decisions of the main thread that are valid for equal requests. A client with one
 * is dialled for at once; the main thread learns of it when it has ended, unless it has looked before.
 */
import { performance } from "node:perf_hooks";
import { type Dial, type AcceptMemory, JOINED } from "#dataplane/workers/shared/accept-memory.ts";
import { ROUTE_DROPPED, FIRST_ACCEPTED_SLOT, SERVED } from "#dataplane/workers/shared/relay-memory.ts";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";
import type { StoredRequestKey, RequestKey } from "./request-key.ts";

/** Changes that invalidate nothing by themselves (a name moves, a node dies) take effect after this time. */
const HOLDS_MS = 1_000;

export interface CachedDial {
  /** As the main thread numbers it. */
  readonly number: number;
  readonly dial: Dial;
  readonly key: StoredRequestKey;
  endsAtMs: number;
  /** New clients may still use it. */
  isKept: boolean;
  /** Connections that use it and have not been reported to the main thread. */
  users: number;
}

interface CachedRoutesHost {
  /** An event that can wait until there is another one. */
  reportLazily(slot: number, kind: number): void;
  /** Of tests only. */
  readonly atSeam?: AtSeam | undefined;
}

export class CachedRoutes {
  readonly #shared: AcceptMemory;
  readonly #host: CachedRoutesHost;
  /** In the order in which they end, by the hashes of their keys: where two have the same the first is kept. */
  readonly #kept = new Map<number, CachedDial>();
  /** By slot, from the first of the thread's own on. */
  readonly #used: (CachedDial | null)[] = [];

  constructor(shared: AcceptMemory, host: CachedRoutesHost) {
    this.#shared = shared;
    this.#host = host;
  }

  get isEmpty(): boolean {
    return this.#kept.size === 0;
  }

  /** Null: the main thread has to be asked. */
  find(key: RequestKey): CachedDial | null {
    const found = this.#kept.get(key.hash);
    if (found === undefined || !key.equals(found.key)) return null;
    if (found.dial.epoch === this.#shared.epoch && performance.now() < found.endsAtMs) return found;
    this.#forget(found);
    return null;
  }

  /** Of a dial that has worked: what the main thread has said of it is good for others, if it has. */
  keep(dial: Dial, key: StoredRequestKey): void {
    const { routeId: number, epoch } = dial;
    if (number === 0) return;
    if (this.#kept.has(key.hash) || epoch !== this.#shared.epoch)
      return this.#host.reportLazily(number, ROUTE_DROPPED);
    const endsAtMs = performance.now() + HOLDS_MS;
    this.#kept.set(key.hash, { number, dial, key, endsAtMs, isKept: true, users: 0 });
  }

  /** The same for a connection that has not. */
  drop({ routeId: number }: Dial): void {
    if (number !== 0) this.#host.reportLazily(number, ROUTE_DROPPED);
  }

  use(slot: number, answer: CachedDial): void {
    answer.users++;
    this.#used[slot - FIRST_ACCEPTED_SLOT] = answer;
  }

  /** Does it go by one? */
  has(slot: number): boolean {
    return (this.#used[slot - FIRST_ACCEPTED_SLOT] ?? null) !== null;
  }

  /** How one that goes by an answer was dialled; null: it does not, or has ended. */
  dialOf(slot: number): Dial | null {
    return this.#used[slot - FIRST_ACCEPTED_SLOT]?.dial ?? null;
  }

  /** It is connected: from now on the main thread may find it. True: it should, for the answer has been withdrawn meanwhile. */
  begin(slot: number): boolean {
    const { epoch, startedAtMs, routeIds } = this.#shared;
    const { dial, number } = this.#used[slot - FIRST_ACCEPTED_SLOT] as CachedDial;
    startedAtMs[slot] = Date.now();
    Atomics.store(routeIds, slot, number);
    return dial.epoch !== epoch;
  }

  /** It could not be dialled by the route: this client and the next one have to ask. */
  giveUp(slot: number): void {
    this.#forget(this.#leave(slot));
  }

  /** Its connection is over. `unknown`: it was never reported, and will not be. */
  end(slot: number): "known" | "passed" | "unknown" {
    const { routeIds } = this.#shared;
    const { number } = this.#used[slot - FIRST_ACCEPTED_SLOT] as CachedDial;
    const before = Atomics.compareExchange(routeIds, slot, number, -number);
    this.#host.atSeam?.("passing");
    if (before === number) this.#host.reportLazily(slot, SERVED);
    else routeIds[slot] = 0;
    this.#leave(slot); // behind the event of its last user
    if (before === number) return "passed";
    return before === JOINED ? "known" : "unknown";
  }

  #leave(slot: number): CachedDial {
    const answer = this.#used[slot - FIRST_ACCEPTED_SLOT] as CachedDial;
    this.#used[slot - FIRST_ACCEPTED_SLOT] = null;
    answer.users--;
    if (answer.users === 0 && !answer.isKept) this.#host.reportLazily(answer.number, ROUTE_DROPPED);
    return answer;
  }

  #forget(answer: CachedDial): void {
    if (!answer.isKept) return;
    answer.isKept = false;
    this.#kept.delete(answer.key.hash);
    if (answer.users === 0) this.#host.reportLazily(answer.number, ROUTE_DROPPED);
  }

  withdraw(): void {
    for (const answer of this.#kept.values()) this.#forget(answer);
  }

  expire(nowMs: number): void {
    for (const answer of this.#kept.values()) {
      if (answer.endsAtMs > nowMs) return;
      this.#forget(answer);
    }
  }
}
