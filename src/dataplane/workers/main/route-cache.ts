/** The cached routes of one worker, main thread's side; see worker/cached-routes.ts for the worker's. */
import type { CachedRoute, WorkerConnection } from "#core/accepted.ts";
import type { Endpoint } from "#core/session.ts";
import { FIRST_ACCEPTED_SLOT, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { type AcceptMemory, JOINED } from "#dataplane/workers/shared/accept-memory.ts";
import type { WorkerTaskOwner } from "./task-owner.ts";
import { int32At, float64At } from "#lib/at.ts";

/** At one time; beyond this a decision is not cached. */
const MOST = 4096;

/** A connection that the main thread knows, in a slot of the worker. */
type KnownClient = WorkerConnection & WorkerTaskOwner;

/** The client for which an answer was found out. */
interface FirstClient {
  readonly source: Endpoint;
  /** Another one that is connected by the same answer. */
  another(slot: number, sourcePort: number): KnownClient;
}

interface Given {
  readonly answer: CachedRoute;
  readonly client: FirstClient;
}

export class RouteCache {
  readonly #table: RelayMemory;
  readonly #accepts: AcceptMemory;
  /** By number; 0 is not used. */
  readonly #given: (Given | null)[] = [null];
  readonly #free: number[] = [];
  #size = 0;

  constructor(table: RelayMemory, accepts: AcceptMemory) {
    this.#table = table;
    this.#accepts = accepts;
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** The number by which the thread speaks of it; 0: it is not to keep it. */
  add(answer: CachedRoute, client: FirstClient): number {
    if (this.#size === MOST) {
      answer.released();
      return 0;
    }
    const number = this.#free.pop() ?? this.#given.length;
    this.#given[number] = { answer, client };
    this.#size++;
    return number;
  }

  /** On the worker's event: the slot is about to be the worker's again. */
  onServed(slot: number): void {
    const { routeIds } = this.#accepts;
    const { answer, client } = this.#given[-int32At(routeIds, slot)] as Given;
    routeIds[slot] = 0;
    const { counts } = this.#table;
    const source: Endpoint = { ip: client.source.ip, port: this.#accepts.sourcePort(slot) };
    answer.served(source, float64At(counts, slot * 2), float64At(counts, slot * 2 + 1));
  }

  onDropped(number: number): void {
    const { answer } = this.#given[number] as Given;
    this.#given[number] = null;
    this.#free.push(number);
    this.#size--;
    answer.released();
  }

  /** Makes all connections by cached routes known to the main thread; `hold` registers a slot. */
  collect(hold: (slot: number, client: KnownClient) => void): void {
    if (this.#size === 0) return;
    const { routeIds, startedAtMs } = this.#accepts;
    for (let slot = FIRST_ACCEPTED_SLOT; slot < FIRST_ACCEPTED_SLOT + this.#table.acceptedSlots; slot++) {
      const number = int32At(routeIds, slot);
      if (number <= 0 || number === JOINED) continue;
      if (Atomics.compareExchange(routeIds, slot, number, JOINED) !== number) continue; // it has just ended
      const { answer, client: first } = this.#given[number] as Given;
      const client = first.another(slot, this.#accepts.sourcePort(slot));
      hold(slot, client);
      answer.joined(client, float64At(startedAtMs, slot));
    }
  }

  /** The thread has died. */
  close(): void {
    for (const [number, given] of this.#given.entries()) if (given !== null) this.onDropped(number);
  }
}
