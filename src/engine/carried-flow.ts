import type { Remains } from "#core/handover.ts";
import type { Direction, Meter } from "#core/meter.ts";
import type { CarryOptions } from "#relay/carrier.ts";
import type { Idle, Sweep } from "#relay/sweep.ts";
import type { Teller } from "./commands.ts";
import type { Side } from "./conversation.ts";
import { PLAIN, type PortPlan, SPARED } from "./port.ts";
import type { Carried, RelayThread } from "./relay-thread.ts";
import { CLOSE, FREE, GRANT, LIMIT, RESET } from "./shared-table.ts";

/** One direction of it. */
interface Way {
  readonly direction: Direction;
  /** 0 or 1: its place in what the thread shares. */
  readonly at: number;
  /** Bytes of the thread's count that `onBytes` has been told of. */
  toldBytes: number;
  /** Bytes that the meter was charged for: more than have moved while a piece is held, less while the flow is free. */
  chargedBytes: number;
  /** Charged for and held back: the meter itself takes it back where it comes to nothing. */
  heldBytes: number;
  timer: NodeJS.Timeout | undefined;
  /** The command that gave it leave; 0: what it was given leave for is out. */
  grant: number;
}

const way = (direction: Direction, at: number): Way => ({
  direction,
  at,
  toldBytes: 0,
  chargedBytes: 0,
  heldBytes: 0,
  timer: undefined,
  grant: 0,
});

/** What a busy socket holds: each piece costs a round trip to the main thread. The meter's own pieces shrink before a quota. */
const MOST_PIECE_BYTES = 2 * 1024 * 1024;

/** Without a signal somebody calls `reset`. */
export type FlowOptions = Omit<CarryOptions, "signal"> & Partial<Pick<CarryOptions, "signal">>;

/** setTimeout takes no more. */
const MAX_HOLD_MS = 0x7fffffff;

/**
 * One conversation as the main thread sees it. While its meter is free, the thread moves what it can and sums are charged
 * afterwards. Otherwise the thread asks for what has arrived, and each piece is charged and held as the pump would do it.
 */
export class CarriedFlow implements Carried, Idle, Teller {
  activeAtMs = 0;
  idleMs: number;
  readonly #thread: RelayThread;
  readonly #meter: Meter;
  readonly #options: FlowOptions;
  readonly #sweep: Sweep;
  #done: () => void = () => {};
  readonly #up = way("upload", 0);
  readonly #down = way("download", 1);
  #slot = -1;
  /** Of the thread, when it was looked at. */
  #turns = -1;
  #limited: boolean;
  #changed = false;
  /** The command that changed its mode; 0: it was obeyed. */
  #change = 0;
  #isEnding = false;
  #ended = false;
  #onAbort: (() => void) | null = null;

  constructor(thread: RelayThread, meter: Meter, options: FlowOptions) {
    this.#thread = thread;
    this.#meter = meter;
    this.#options = options;
    this.#sweep = options.sweep.seldom;
    this.#limited = meter.free !== true;
    this.idleMs = options.idleMs;
  }

  /** Both ports are the thread's from now on. */
  start(client: PortPlan, remote: PortPlan, done: () => void): void {
    this.#begin(this.#thread.add(client, remote, this.#limited, this), done);
    const { signal } = this.#options;
    if (signal !== undefined) signal.addEventListener("abort", (this.#onAbort = () => this.reset()));
  }

  /** The thread has it already; `limited`: every piece is asked for. */
  join(slot: number, limited: boolean, done: () => void): void {
    this.#begin(slot, done);
    this.#limited = limited;
    this.#count();
    this.#setMode();
  }

  #begin(slot: number, done: () => void): void {
    this.#slot = slot;
    this.#done = done;
    this.#sweep.add(this);
    this.#meter.onChange = () => this.#onChange();
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
    if (halfClosed[this.#slot] === 1) this.idleMs = Math.min(this.idleMs, this.#options.halfClosedIdleMs);
    this.#lookAt(this.#up, counts);
    this.#lookAt(this.#down, counts);
  }

  #lookAt(one: Way, counts: Float64Array): void {
    const bytes = counts[this.#slot * 2 + one.at] as number;
    if (bytes === one.toldBytes) return;
    this.activeAtMs = this.#sweep.exactMs;
    this.#options.onBytes(one.direction, bytes - one.toldBytes);
    one.toldBytes = bytes;
    if (bytes > one.chargedBytes) this.#correct(one, bytes - one.chargedBytes);
  }

  /** Of what moved without leave, or did not come with leave: nothing of it can be held back any more. */
  #correct(one: Way, bytes: number): void {
    one.chargedBytes += bytes;
    this.#meter.correct(one.direction, bytes);
  }

  /** What was granted before has moved by now, and perhaps something more from a time without limits. */
  onAsked(direction: Direction): void {
    const one = direction === "upload" ? this.#up : this.#down;
    if (!this.#limited || this.#ended) return;
    this.#wentOut(one);
    const { asked, counts } = this.#thread.table;
    this.#lookAt(one, counts);
    const meter = this.#meter;
    const piece = Math.min(
      asked[this.#slot * 2 + one.at] as number,
      Math.max(1, meter.pieceBytes),
      MOST_PIECE_BYTES,
    );
    one.chargedBytes += piece;
    const holdMs = meter.charge(one.direction, piece) || meter.pass(one.direction, piece);
    if (holdMs <= 0) return this.#grant(one, piece);
    one.heldBytes = piece;
    this.#wait(one, holdMs);
  }

  #wait(one: Way, holdMs: number): void {
    one.timer = setTimeout(() => this.#release(one), Math.min(holdMs, MAX_HOLD_MS));
  }

  #release(one: Way): void {
    const { heldBytes } = one;
    const holdMs = this.#meter.pass(one.direction, heldBytes);
    if (holdMs > 0) return this.#wait(one, holdMs);
    one.heldBytes = 0;
    this.#grant(one, heldBytes);
    this.#setMode();
  }

  #grant(one: Way, bytes: number): void {
    this.#thread.table.asked[this.#slot * 2 + one.at] = bytes;
    one.grant = this.#thread.command(this.#slot, GRANT + one.at, this);
  }

  /** It may have been granted something since, of which it hears by itself. */
  onObeyed(told: number): void {
    if (this.#up.grant === told) this.#wentOut(this.#up);
    else if (this.#down.grant === told) this.#wentOut(this.#down);
    else if (this.#change === told) {
      this.#change = 0;
      this.#onChange();
    }
  }

  #wentOut(one: Way): void {
    if (one.grant === 0) return;
    one.grant = 0;
    this.#meter.wentOut?.(one.direction);
  }

  /** The meter is bound anew in two steps; what counts is where it ends. */
  #onChange(): void {
    if (this.#changed) return;
    this.#changed = true;
    queueMicrotask(() => {
      this.#changed = false;
      this.#setMode();
    });
  }

  /**
   * What is held stays held for its time: it was paid for. One change at a time: once the thread asks for nothing any more,
   * all that it has asked for has been said, and is heard of before it is told to ask again. So a question is never taken
   * for a later one, and answered twice.
   */
  #setMode(): void {
    const limited = this.#meter.free !== true;
    if (limited === this.#limited || this.#ended || this.#change !== 0) return;
    if (this.#up.heldBytes + this.#down.heldBytes > 0) return;
    if (limited) this.#thread.takeNews();
    if (this.#ended) return;
    this.#count();
    this.#limited = limited;
    this.#change = this.#thread.command(this.#slot, limited ? LIMIT : FREE, this);
  }

  /** Ends both sides as a fault would. */
  reset(): void {
    this.#end(RESET);
  }

  expire(): void {
    this.#end(CLOSE);
  }

  #end(command: typeof RESET | typeof CLOSE): void {
    if (this.#ended || this.#isEnding) return;
    this.#isEnding = true;
    this.#thread.command(this.#slot, command);
  }

  /** Once it has ended: the descriptor of a side that was not closed and is the caller's from here on; -1: there is none. */
  takeSpared(side: Side): number {
    const { descriptors, kinds } = this.#thread.table;
    const place = this.#slot * 2 + side;
    if (kinds[place] !== SPARED) return -1;
    const fd = descriptors[place] as number;
    kinds[place] = PLAIN;
    descriptors[place] = -1;
    return fd;
  }

  /** The same of what its port had in hand. */
  takeRemains(side: Side): Remains | null {
    return this.#thread.takeRemains(this.#slot * 2 + side);
  }

  onEnded(): void {
    this.#count();
    this.#ended = true;
    for (const one of [this.#up, this.#down]) {
      clearTimeout(one.timer);
      this.#wentOut(one);
      const late = one.toldBytes - (one.chargedBytes - one.heldBytes);
      if (one.heldBytes > 0) this.#meter.cancel?.(one.direction);
      if (late !== 0) this.#correct(one, late);
    }
    this.#meter.onChange = null;
    this.#sweep.remove(this);
    if (this.#onAbort !== null) this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#done();
  }
}
