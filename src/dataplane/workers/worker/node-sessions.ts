/** The sessions of nodes that one thread has. Of each the socket stands in one slot: that of its stream, or one of its own. */
import { performance } from "node:perf_hooks";
import type { MuxRecipe, SessionRecipe } from "#core/wire-recipe.ts";
import { int32At } from "#lib/at.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { KINDS, PLAIN, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import type { NodeSession, SessionOrigin } from "#dataplane/workers/wire/node-session.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";
import { IdleSession } from "./idle-session.ts";
import { MuxPool } from "./mux-pool.ts";
import type { AcceptorHost } from "./pending-task.ts";
import { SessionPool } from "./session-pool.ts";

/** How often pools are looked at while there is an idle session. */
const LOOK_MS = 1_000;

/** Of the acceptor. */
interface SlotOwner {
  readonly calls: AcceptCalls;
  readonly table: RelayMemory;
  readonly host: AcceptorHost;
  /** -1: there is none. */
  takeSlot(): number;
  freeSlot(slot: number): void;
}

export class NodeSessions {
  readonly #owner: SlotOwner;
  readonly #pools = new Map<string, SessionPool>();
  readonly #shared = new Map<string, MuxPool>();
  #lookAtMs = 0;

  constructor(owner: SlotOwner) {
    this.#owner = owner;
  }

  #of(recipe: SessionRecipe): SessionPool {
    const pool = this.#pools.get(recipe.id) ?? new SessionPool(recipe);
    this.#pools.set(recipe.id, pool);
    return pool;
  }

  /** Over a wire that was just opened. */
  newSession(recipe: SessionRecipe, inner: Wire, origin: SessionOrigin): NodeSession {
    return this.#of(recipe).newSession(inner, origin);
  }

  /** The youngest idle one, whose socket is that of the slot's far side from now on. Null: there is none. */
  adopt(recipe: SessionRecipe, slot: number): NodeSession | null {
    const { host } = this.#owner;
    const idle = this.#of(recipe).take();
    if (idle === null) return null;
    host.put(idle.slot, null);
    const isMoved = this.#move(idle.session, idle.slot, slot);
    this.#owner.freeSlot(idle.slot);
    if (!isMoved) this.discard(idle.session, slot);
    return isMoved ? idle.session : null;
  }

  /** A session without a stream, whose socket is that of the slot's far side: it waits for another stream, or is closed. */
  release(session: NodeSession, from: number): void {
    const { host } = this.#owner;
    const pool = this.#of(session.recipe);
    const slot = session.isDead ? -1 : this.#owner.takeSlot();
    if (slot < 0) return this.discard(session, from);
    const one = new IdleSession(slot, session, performance.now(), () => pool.remove(one));
    host.put(slot, one);
    if (!this.#move(session, from, slot)) host.end(slot, true);
    else if (session.recipe.reuses && !pool.isGone) pool.put(one);
    else one.isClosing = true;
  }

  /** Its socket and what its wire holds are in one place at a time: should this worker die in between, they are in none. False: nothing watches it there. */
  #move({ origin }: NodeSession, fromSlot: number, toSlot: number): boolean {
    const { calls, host, table } = this.#owner;
    const { descriptors, kinds, owned, wireNumbers } = table;
    const [from, to] = [fromSlot * 2 + 1, toSlot * 2 + 1];
    const fd = int32At(descriptors, from);
    owned[from] = kinds[from] = PLAIN;
    Atomics.store(descriptors, from, -1);
    wireNumbers.set(origin.numbers, to * WIRE_NUMBERS);
    owned[to] = kinds[to] = KINDS[origin.kind];
    Atomics.store(descriptors, to, fd);
    return calls.watchAs(host.epoll, fd, to) >= 0;
  }

  /** One whose socket is that of the slot's far side. */
  discard(session: NodeSession, slot: number): void {
    const { calls, host, table } = this.#owner;
    const index = slot * 2 + 1;
    const fd = int32At(table.descriptors, index);
    table.owned[index] = table.kinds[index] = PLAIN;
    Atomics.store(table.descriptors, index, -1);
    host.atSeam?.("freeing");
    session.inner.drop(host.io);
    host.atSeam?.("closing");
    if (fd >= 0) calls.close(fd);
  }

  /** The shared connections of the node. */
  sharedOf(recipe: MuxRecipe): MuxPool {
    const pool = this.#shared.get(recipe.id) ?? new MuxPool(recipe, this.#owner.host.threads);
    this.#shared.set(recipe.id, pool);
    return pool;
  }

  /** Once a turn. How long the thread may sleep, in ms. */
  tick(longestMs: number): number {
    if (this.#pools.size + this.#shared.size === 0) return longestMs;
    const nowMs = performance.now();
    if (nowMs >= this.#lookAtMs) this.#look(nowMs);
    return Math.min(longestMs, LOOK_MS);
  }

  #look(nowMs: number): void {
    this.#lookAtMs = nowMs + LOOK_MS;
    for (const [id, pool] of this.#pools) {
      pool.check(nowMs, (one) => this.#close(one));
      if (pool.isGone && pool.size === 0) this.#pools.delete(id);
    }
    for (const [id, pool] of this.#shared) {
      pool.check();
      if (pool.isGone && pool.size === 0) this.#shared.delete(id);
    }
  }

  #close({ slot, session }: IdleSession): void {
    if (!session.pending) session.inner.endWriting(this.#owner.host.io);
    this.#owner.host.end(slot, false);
  }
}
