import { performance } from "node:perf_hooks";
import type { MuxRecipe } from "#core/wire-recipe.ts";
import { NO_MESSAGE, PLAIN, TLS } from "#dataplane/workers/shared/wire-spec.ts";
import { newNodeFraming } from "#dataplane/workers/wire/mux-framings.ts";
import type { MuxFraming } from "#dataplane/workers/wire/mux-framing.ts";
import { NodeMuxSession } from "#dataplane/workers/wire/node-mux-session.ts";
import type { SharedConnection } from "./mux-pool.ts";
import type { PendingOwner } from "./pending-owner.ts";
import type { RemoteDial } from "./remote-dial.ts";
import { FAILED, MORE, OVER, WAITS, type Outcome, type Task, type TaskIo } from "./task.ts";

/** A connection to the server of a node that many streams share, in a slot of its own: from its dial to its end. */
export class MuxConnection implements Task, SharedConnection {
  queued = false;
  readonly halfClosed = false;
  readonly slot: number;
  readonly #owner: PendingOwner;
  readonly #recipe: MuxRecipe;
  readonly #framing: MuxFraming;
  /** What goes out in front of all frames. */
  readonly #opening: Uint8Array;
  readonly #onGone: (one: MuxConnection) => void;
  /** Null: it is open, or over. */
  #remote: RemoteDial | null;
  #deadlineMs: number;
  #session: NodeMuxSession | null = null;
  #isRetiring = false;
  /** Slots whose stream is about to be opened. */
  readonly #awaiting = new Set<number>();

  constructor(
    owner: PendingOwner,
    remote: RemoteDial,
    slot: number,
    recipe: MuxRecipe,
    onGone: (one: MuxConnection) => void,
  ) {
    this.#owner = owner;
    this.#remote = remote;
    this.slot = slot;
    this.#recipe = recipe;
    [this.#framing, this.#opening] = newNodeFraming(recipe.protocol);
    this.#onGone = onGone;
    this.#deadlineMs = performance.now() + remote.timeoutMs;
  }

  /** False: it could not be begun, and nothing is left of it. */
  start(): boolean {
    const { host } = this.#owner;
    const remote = this.#remote;
    if (remote === null) return false;
    host.put(this.slot, this);
    const isBegun = remote.start() === 0 && host.watch(this.slot, remote.descriptor, 1);
    if (isBegun) host.wake(this.slot * 2 + 1);
    else {
      host.put(this.slot, null);
      remote.hangUp();
      this.#owner.freeSlot(this.slot);
    }
    return isBegun;
  }

  get session(): NodeMuxSession | null {
    return this.#session;
  }

  get isUsable(): boolean {
    const isSilent = this.#session?.isSilent === true;
    if (this.#isRetiring || isSilent || this.streams >= this.#framing.mostStreams) return false;
    return this.#session?.isUsable ?? this.#remote !== null;
  }

  get isOver(): boolean {
    return this.#session?.isDead ?? this.#remote === null;
  }

  get streams(): number {
    return this.#awaiting.size + (this.#session?.streams ?? 0);
  }

  await(slot: number): void {
    this.#awaiting.add(slot);
  }

  settle(slot: number): void {
    this.#awaiting.delete(slot);
    if (this.#isRetiring && this.#awaiting.size === 0) this.#session?.retire();
  }

  retire(): void {
    this.#isRetiring = true;
    if (this.#awaiting.size === 0) this.#session?.retire();
  }

  onEvents(_side: number, events: number): boolean {
    if (this.#remote !== null) this.#remote.events |= events;
    return this.#session?.onEvents(events) ?? true;
  }

  limit(): void {} // its streams are

  grant(): void {}

  run(io: TaskIo): Outcome {
    const session = this.#session ?? this.#open(io);
    if (session === null) return this.#remote === null ? FAILED : WAITS;
    const hasMore = session.turn(io);
    if (session.isOver) return OVER;
    return hasMore ? MORE : WAITS;
  }

  /** Null: there is no session yet, or there will be none. */
  #open(io: TaskIo): NodeMuxSession | null {
    const remote = this.#remote;
    const result = remote?.takeResult() ?? this.#awaitMore(io);
    if (result === null || remote === null) return null;
    if (result === 0) this.#begin(io, remote);
    if (this.#session === null) this.#hangUp();
    this.#wakeAll();
    return this.#session;
  }

  #awaitMore(io: TaskIo): null {
    const nowMs = performance.now();
    const moreMs = nowMs < this.#deadlineMs ? 0 : (this.#remote?.takeMoreMs() ?? 0);
    this.#deadlineMs += moreMs;
    if (nowMs < this.#deadlineMs) io.wakeAtMs = Math.min(io.wakeAtMs, this.#deadlineMs);
    else this.#hangUp();
    if (this.#remote === null) this.#wakeAll();
    return null;
  }

  #begin(io: TaskIo, remote: RemoteDial): void {
    const { calls, host, table } = this.#owner;
    const { base } = this.#recipe;
    const index = this.slot * 2 + 1;
    const inner = host.open(index, remote.begin(NO_MESSAGE));
    if (inner === null) return;
    // A wire of plain bytes sets it by itself; one that has something under it has it.
    if (table.kinds[index] !== PLAIN && base.under === undefined) calls.noDelay(remote.descriptor);
    remote.settle();
    this.#remote = null;
    inner.begin?.(io);
    inner.onEvents(remote.events);
    this.#session = new NodeMuxSession(inner, this.#framing, this.#opening, () => host.wake(index));
    if (this.#isRetiring) this.retire();
  }

  #hangUp(): void {
    const remote = this.#remote;
    this.#remote = null;
    if (remote === null) return;
    const { table } = this.#owner;
    // At the end of its slot, what its wires hold was struck off before.
    if (remote.opens === "tls") table.owned[this.slot * 2 + 1] = TLS;
    remote.hangUp();
  }

  #wakeAll(): void {
    for (const slot of this.#awaiting) this.#owner.host.wake(slot * 2 + 1);
  }

  drop(io: TaskIo): void {
    this.#onGone(this);
    this.#hangUp();
    this.#wakeAll();
    this.#session?.drop(io);
  }
}
