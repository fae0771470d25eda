import type { MuxRecipe } from "#core/wire-recipe.ts";
import type { NodeMuxSession } from "#dataplane/workers/wire/node-mux-session.ts";

/** One connection of a node, open or about to be. */
export interface SharedConnection {
  /** Null: it is still to be opened. */
  readonly session: NodeMuxSession | null;
  readonly isUsable: boolean;
  /** It will have no session any more. */
  readonly isOver: boolean;
  /** Streams that are open, or waited for. */
  readonly streams: number;
  /** The slot is woken once there is a session, or once there will be none. */
  await(slot: number): void;
  /** The stream of the slot was opened, or will not be. */
  settle(slot: number): void;
  /** Opens no further streams, and ends with the last one. */
  retire(): void;
}

/** Where neither connections nor streams are limited. */
const DEFAULT_MIN_STREAMS = 8;

/** The shared connections of a node that one thread has. What bounds them is as the event loop has it (`transport/mux/pool.ts`). */
export class MuxPool {
  readonly #recipe: MuxRecipe;
  readonly #gone: Int32Array;
  /** Of connections, in this thread. */
  readonly #most: number;
  readonly #connections = new Set<SharedConnection>();

  /** `threads`: among which its connections are divided. */
  constructor(recipe: MuxRecipe, threads: number) {
    const { gone, maxConnections } = recipe;
    this.#recipe = recipe;
    this.#gone = new Int32Array(gone);
    this.#most = maxConnections === 0 ? Infinity : Math.max(1, Math.floor(maxConnections / threads));
  }

  /** Its node has gone. */
  get isGone(): boolean {
    return Atomics.load(this.#gone, 0) !== 0;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** One for a further stream, open or about to be: the least busy one, or the one that `dial` begins. Null: there is none. */
  choose(dial: () => SharedConnection | null): SharedConnection | null {
    const open = this.#leastBusy(true);
    if (open !== null && !this.#wantsMore(open.streams)) return open;
    const coming = this.#leastBusy(false);
    if (coming !== null && !this.#wantsMore(coming.streams)) return coming;
    return (this.#mayDial ? dial() : null) ?? open ?? coming;
  }

  #leastBusy(isOpen: boolean): SharedConnection | null {
    let best: SharedConnection | null = null;
    for (const one of this.#connections)
      if (one.isUsable && (one.session !== null) === isOpen && (best === null || one.streams < best.streams))
        best = one;
    return best;
  }

  /** Is a further one due, when the least busy one has so many streams? */
  #wantsMore(streams: number): boolean {
    const { maxConnections, minStreams, maxStreams } = this.#recipe;
    if (streams === 0) return false;
    if (maxStreams > 0) return streams >= maxStreams;
    if (maxConnections === 0) return streams >= (minStreams || DEFAULT_MIN_STREAMS);
    return this.#mayDial && streams >= minStreams;
  }

  get #mayDial(): boolean {
    return this.#connections.size < this.#most;
  }

  enter(one: SharedConnection): void {
    this.#connections.add(one);
  }

  readonly leave = (one: SharedConnection): void => void this.#connections.delete(one);

  /** Now and then: where the node has gone, idle ones end, and busy ones with their last stream. */
  check(): void {
    if (this.isGone) for (const one of this.#connections) one.retire();
  }
}
