import type { WireRemainder } from "#core/wire-state.ts";
import type { Direction, Meter, MeterObserver } from "#core/meter.ts";
import type { RelayOwner, RelayTimeouts, Resettable } from "#dataplane/backend.ts";
import type { IdleEntry } from "#dataplane/idle-timers.ts";
import type { CommandObserver } from "./commands.ts";
import { takeOpenDescriptor } from "./open-descriptor.ts";
import { CLIENT, type Side } from "#dataplane/workers/shared/sides.ts";
import type { HandedWire } from "#dataplane/workers/shared/wire-spec.ts";
import type { WorkerHandle } from "./worker-handle.ts";
import type { WorkerTaskOwner } from "./task-owner.ts";
import { CLOSE, FREE, GRANT, LIMIT, RESET } from "#dataplane/workers/shared/opcodes.ts";
import { float64At } from "#lib/at.ts";

/** What each direction has in what the thread shares. */
const UP = 0;
const DOWN = 1;
type At = typeof UP | typeof DOWN;
const DIRECTIONS: readonly Direction[] = ["upload", "download"];

/** State of one direction that needs grants. */
interface GrantState {
  readonly at: At;
  readonly direction: Direction;
  /** Bytes that the meter was charged for: more than have moved while a piece is held. */
  chargedBytes: number;
  /** Charged for and held back: the meter itself takes it back where it comes to nothing. */
  delayedBytes: number;
  timer: NodeJS.Timeout | undefined;
  /** The command with the latest grant; 0: the granted bytes have been sent. */
  grant: number;
}

const asking = (at: At, chargedBytes: number): GrantState => ({
  at,
  direction: DIRECTIONS[at] as Direction,
  chargedBytes,
  delayedBytes: 0,
  timer: undefined,
  grant: 0,
});

/** What a busy socket holds: each piece costs a round trip to the main thread. The meter's own pieces shrink before a quota. */
const MOST_PIECE_BYTES = 2 * 1024 * 1024;

/** setTimeout takes no more. */
const MAX_HOLD_MS = 0x7fffffff;

/**
 * One relayed connection as the main thread sees it. While its meter is free, the worker moves everything and sums are
 * charged afterwards. Otherwise the worker asks for grants, and each piece is charged and delayed as the pump would do
 * it. There are thousands, mostly idle: the state of a limit is made at the first limit.
 */
export class OffloadedFlow implements WorkerTaskOwner, IdleEntry, CommandObserver, MeterObserver, Resettable {
  activeAtMs = 0;
  idleMs: number;
  readonly #thread: WorkerHandle;
  readonly #meter: Meter;
  readonly #timeouts: RelayTimeouts;
  readonly #owner: RelayOwner;
  /** By direction. Null: it was free all the time, and reported bytes were charged. */
  #grants: readonly [GrantState, GrantState] | null = null;
  #slot = -1;
  /** Of the thread, when it was looked at. */
  #turns = -1;
  #limited: boolean;
  #changed = false;
  /** The command that changed its mode; 0: it was obeyed. */
  #change = 0;
  #isEnding = false;
  #ended = false;
  #takeBack: ((fd: number) => void) | undefined;

  constructor(thread: WorkerHandle, meter: Meter, timeouts: RelayTimeouts, owner: RelayOwner) {
    this.#thread = thread;
    this.#meter = meter;
    this.#timeouts = timeouts;
    this.#owner = owner;
    this.#limited = meter.free !== true;
    this.idleMs = timeouts.idleMs;
  }

  /** Both ports are the thread's from now on. */
  start(client: HandedWire, remote: HandedWire): void {
    this.#begin(this.#thread.add(client, remote, this.#limited, this));
  }

  /** The worker relays it already, as its dial plan said. `takeBack`: for the client's socket, where the end leaves it open. */
  join(slot: number, takeBack?: (fd: number) => void): void {
    this.#takeBack = takeBack;
    this.#limited = this.#thread.table.limited[slot] === 1;
    this.#begin(slot);
    this.#count();
    this.#setMode();
  }

  #begin(slot: number): void {
    this.#slot = slot;
    const { reported } = this.#thread;
    reported[slot * 2] = reported[slot * 2 + 1] = 0;
    if (this.#limited) this.#grants = [asking(UP, 0), asking(DOWN, 0)];
    this.#timeouts.timers.slow.add(this);
    this.#meter.observe?.(this);
  }

  /** Thousands of idle flows cost one comparison each. */
  look(): void {
    const { turns } = this.#thread.table;
    if (turns === this.#turns) return;
    this.#turns = turns;
    this.#count();
  }

  #count(): void {
    const { counts, halfClosed } = this.#thread.table;
    if (halfClosed[this.#slot] === 1) this.#halfClosed();
    this.#lookAt(UP, counts);
    this.#lookAt(DOWN, counts);
  }

  /** However long it was silent before, the other side has its time to answer. */
  #halfClosed(): void {
    const { halfClosedIdleMs, timers } = this.#timeouts;
    if (this.idleMs <= halfClosedIdleMs) return; // it is known
    this.idleMs = halfClosedIdleMs;
    this.activeAtMs = timers.slow.exactMs;
  }

  #lookAt(at: At, counts: Float64Array): void {
    const { reported } = this.#thread;
    const index = this.#slot * 2 + at;
    const bytes = float64At(counts, index);
    const moved = bytes - float64At(reported, index);
    if (moved === 0) return;
    const direction = DIRECTIONS[at] as Direction;
    this.activeAtMs = this.#timeouts.timers.exactMs;
    this.#owner.onBytes(direction, moved);
    reported[index] = bytes;
    if (this.#grants === null) this.#meter.adjust(direction, moved);
    else this.#catchUp(this.#grants[at], bytes);
  }

  /** With what moved without leave. */
  #catchUp(one: GrantState, bytes: number): void {
    if (bytes > one.chargedBytes) this.#correct(one, bytes - one.chargedBytes);
  }

  /** Of what moved without leave, or did not come with leave: nothing of it can be held back any more. */
  #correct(one: GrantState, bytes: number): void {
    one.chargedBytes += bytes;
    this.#meter.adjust(one.direction, bytes);
  }

  /** What was granted before has moved by now, and perhaps something more from a time without limits. */
  onGrantRequest(direction: Direction): void {
    if (!this.#limited || this.#ended || this.#grants === null) return;
    const one = this.#grants[direction === "upload" ? UP : DOWN];
    this.#onSent(one);
    const { asked, counts } = this.#thread.table;
    this.#lookAt(one.at, counts);
    const meter = this.#meter;
    const piece = Math.min(
      float64At(asked, this.#slot * 2 + one.at),
      Math.max(1, meter.pieceBytes),
      MOST_PIECE_BYTES,
    );
    one.chargedBytes += piece;
    const holdMs = meter.reserve(one.direction, piece) || meter.trySend(one.direction, piece);
    if (holdMs <= 0) return this.#grant(one, piece);
    one.delayedBytes = piece;
    this.#wait(one, holdMs);
  }

  #wait(one: GrantState, holdMs: number): void {
    one.timer = setTimeout(() => this.#release(one), Math.min(holdMs, MAX_HOLD_MS));
  }

  #release(one: GrantState): void {
    const { delayedBytes: heldBytes } = one;
    const holdMs = this.#meter.trySend(one.direction, heldBytes);
    if (holdMs > 0) return this.#wait(one, holdMs);
    one.delayedBytes = 0;
    this.#grant(one, heldBytes);
    this.#setMode();
  }

  #grant(one: GrantState, bytes: number): void {
    this.activeAtMs = this.#timeouts.timers.exactMs; // its bytes are there
    this.#thread.table.asked[this.#slot * 2 + one.at] = bytes;
    one.grant = this.#thread.command(this.#slot, GRANT + one.at, this);
  }

  /** A later grant in progress is reported by its own command. */
  onExecuted(posted: number): void {
    const granted = this.#grants?.find(({ grant }) => grant === posted);
    if (granted !== undefined) this.#onSent(granted);
    else if (this.#change === posted) {
      this.#change = 0;
      this.onMeterChange();
    }
  }

  #onSent(one: GrantState): void {
    if (one.grant === 0) return;
    one.grant = 0;
    this.#meter.sent?.(one.direction);
  }

  /** The meter is bound anew in two steps; what counts is where it ends. */
  onMeterChange(): void {
    if (this.#changed) return;
    this.#changed = true;
    queueMicrotask(() => {
      this.#changed = false;
      this.#setMode();
    });
  }

  /**
   * A delayed piece keeps its delay: it was paid for. One change at a time: once the worker asks for no grants any
   * more, all its earlier requests have been read before it is told to ask again. So a request is never taken for a
   * later one, and answered twice.
   */
  #setMode(): void {
    const limited = this.#meter.free !== true;
    if (limited === this.#limited || this.#ended || this.#change !== 0) return;
    if (this.#grants?.some(({ delayedBytes: heldBytes }) => heldBytes > 0) === true) return;
    if (limited) this.#thread.takeEvents();
    if (this.#ended) return;
    this.#count();
    this.#limited = limited;
    if (limited) this.#grants ??= [this.#askingFrom(UP), this.#askingFrom(DOWN)];
    this.#change = this.#thread.command(this.#slot, limited ? LIMIT : FREE, this);
  }

  #askingFrom(at: At): GrantState {
    return asking(at, float64At(this.#thread.reported, this.#slot * 2 + at));
  }

  /** Ends both sides as a fault would. */
  reset(): void {
    this.#end(RESET);
  }

  /** Where this thread gets next to no CPU time, the question for leave may have waited for as long as that. */
  expire(): void {
    const { timers } = this.#timeouts;
    this.#thread.takeEvents();
    if (this.#ended) return;
    if (timers.exactMs - this.activeAtMs < this.idleMs) timers.slow.add(this);
    else {
      this.#owner.onSilent?.();
      this.#end(CLOSE);
    }
  }

  #end(command: typeof RESET | typeof CLOSE): void {
    if (this.#ended || this.#isEnding) return;
    this.#isEnding = true;
    this.#thread.command(this.#slot, command);
  }

  /** Once it has ended: the descriptor of a side that was not closed and is the caller's from here on; -1: there is none. */
  takeOpenDescriptor(side: Side): number {
    return takeOpenDescriptor(this.#thread.table, this.#slot * 2 + side);
  }

  /** The same for the state of its wire. */
  takeRemainder(side: Side): WireRemainder | null {
    return this.#thread.takeRemainder(this.#slot * 2 + side);
  }

  onEnded(): void {
    this.#count();
    this.#ended = true;
    if (this.#grants !== null) for (const one of this.#grants) this.#settle(one);
    this.#meter.observe?.(null);
    this.#timeouts.timers.slow.remove(this);
    if (this.#takeBack !== undefined) this.#giveBack(this.#takeBack);
    this.#owner.onEnded();
  }

  #giveBack(takeBack: (fd: number) => void): void {
    const fd = this.takeOpenDescriptor(CLIENT);
    if (fd >= 0) takeBack(fd);
  }

  #settle(one: GrantState): void {
    clearTimeout(one.timer);
    this.#onSent(one);
    const posted = float64At(this.#thread.reported, this.#slot * 2 + one.at);
    const late = posted - (one.chargedBytes - one.delayedBytes);
    if (one.delayedBytes > 0) this.#meter.cancel?.(one.direction);
    if (late !== 0) this.#correct(one, late);
  }
}
