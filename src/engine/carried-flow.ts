import type { Direction, Meter } from "#core/meter.ts";
import type { CarryOptions } from "#relay/carrier.ts";
import type { Idle } from "#relay/sweep.ts";
import type { PortPlan } from "./port.ts";
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
}

const way = (direction: Direction, at: number): Way => ({
  direction,
  at,
  toldBytes: 0,
  chargedBytes: 0,
  heldBytes: 0,
  timer: undefined,
});

/** What a busy socket holds: each piece costs a round trip to the main thread. The meter's own pieces shrink before a quota. */
const MOST_PIECE_BYTES = 2 * 1024 * 1024;

/** setTimeout takes no more. */
const MAX_HOLD_MS = 0x7fffffff;

/**
 * One conversation as the main thread sees it. While its meter is free, the thread moves what it can and sums are charged
 * afterwards. Otherwise the thread asks for what has arrived, and each piece is charged and held as the pump would do it.
 */
export class CarriedFlow implements Carried, Idle {
  activeAtMs = 0;
  idleMs: number;
  readonly #thread: RelayThread;
  readonly #meter: Meter;
  readonly #options: CarryOptions;
  #done: () => void = () => {};
  readonly #up = way("upload", 0);
  readonly #down = way("download", 1);
  #slot = -1;
  #limited: boolean;
  #changed = false;
  #ended = false;
  readonly #onAbort = (): void => this.reset();

  constructor(thread: RelayThread, meter: Meter, options: CarryOptions) {
    this.#thread = thread;
    this.#meter = meter;
    this.#options = options;
    this.#limited = meter.free !== true;
    this.idleMs = options.idleMs;
  }

  /** Both ports are the thread's from now on. */
  start(client: PortPlan, remote: PortPlan, done: () => void): void {
    this.#done = done;
    this.#slot = this.#thread.add(client, remote, this.#limited, this);
    this.#options.sweep.add(this);
    this.#options.signal.addEventListener("abort", this.#onAbort);
    this.#meter.onChange = () => this.#onChange();
  }

  look(): void {
    const { counts, halfClosed } = this.#thread.table;
    if (halfClosed[this.#slot] === 1) this.idleMs = Math.min(this.idleMs, this.#options.halfClosedIdleMs);
    this.#lookAt(this.#up, counts);
    this.#lookAt(this.#down, counts);
  }

  #lookAt(one: Way, counts: Float64Array): void {
    const bytes = counts[this.#slot * 2 + one.at] as number;
    if (bytes === one.toldBytes) return;
    this.activeAtMs = this.#options.sweep.nowMs;
    this.#options.onBytes(one.direction, bytes - one.toldBytes);
    one.toldBytes = bytes;
    if (!this.#limited && bytes > one.chargedBytes) this.#charge(one, bytes - one.chargedBytes);
  }

  #charge(one: Way, bytes: number): number {
    one.chargedBytes += bytes;
    return this.#meter.charge(one.direction, bytes);
  }

  /** What was granted before has moved by now, and perhaps something more from a time without limits. */
  onAsked(direction: Direction): void {
    const one = direction === "upload" ? this.#up : this.#down;
    if (!this.#limited || this.#ended || one.heldBytes > 0) return;
    const { asked, counts } = this.#thread.table;
    const place = this.#slot * 2 + one.at;
    const piece = Math.min(asked[place] as number, Math.max(1, this.#meter.pieceBytes), MOST_PIECE_BYTES);
    const owed = Math.max(0, (counts[place] as number) - one.chargedBytes);
    if (owed > 0) this.#charge(one, owed);
    const holdMs = this.#charge(one, piece);
    if (holdMs <= 0) return this.#grant(one, piece);
    one.heldBytes = piece;
    one.timer = setTimeout(() => this.#release(one), Math.min(holdMs, MAX_HOLD_MS));
  }

  #release(one: Way): void {
    const { heldBytes } = one;
    one.heldBytes = 0;
    this.#grant(one, heldBytes);
    this.#setMode();
  }

  #grant(one: Way, bytes: number): void {
    this.#thread.table.asked[this.#slot * 2 + one.at] = bytes;
    this.#thread.command(this.#slot, GRANT + one.at);
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

  /** What is held stays held for its time: it was paid for. */
  #setMode(): void {
    const limited = this.#meter.free !== true;
    if (limited === this.#limited || this.#ended || this.#up.heldBytes + this.#down.heldBytes > 0) return;
    this.look();
    this.#limited = limited;
    this.#thread.command(this.#slot, limited ? LIMIT : FREE);
  }

  /** Ends both sides as a fault would. */
  reset(): void {
    if (!this.#ended) this.#thread.command(this.#slot, RESET);
  }

  expire(): void {
    this.#thread.command(this.#slot, CLOSE);
  }

  onEnded(): void {
    this.look();
    this.#ended = true;
    for (const one of [this.#up, this.#down]) {
      clearTimeout(one.timer);
      const late = one.toldBytes - (one.chargedBytes - one.heldBytes);
      if (late !== 0) this.#charge(one, late);
    }
    this.#meter.onChange = null;
    this.#options.sweep.remove(this);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#done();
  }
}
