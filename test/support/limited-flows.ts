/** Streams at token buckets, on a clock of their own: what the relay does with a meter, with timers as late as you like. */
import { Slot, type TokenBucket } from "#lib/token-bucket.ts";

export interface Flow {
  readonly slots: readonly Slot[];
  /** What a read gives at most. */
  readonly readBytes: number;
  moved: number;
}

export const flow = (buckets: readonly TokenBucket[], readBytes = 64 * 1024): Flow => ({
  slots: buckets.map((bucket) => new Slot(bucket, null)),
  readBytes,
  moved: 0,
});

/** What the machine does to the program; all in ms, asked for each time. */
export interface Machine {
  /** How late a timer is. */
  readonly lateMs?: () => number;
  /** How long after its leave a piece goes out, where a thread writes it; absent: at once. */
  readonly writeMs?: () => number;
  /** How long after a piece has gone out the next one is there. */
  readonly readMs?: () => number;
  /** Asked before everything the program does: how long nothing of it runs. */
  readonly stallMs?: (nowMs: number) => number;
}

/** Numbers from 0 to 1, the same for the same seed. */
export function randomOf(seed: number): () => number {
  let state = (seed % 0x7ffffffe) + 1;
  return () => (state = (state * 48_271) % 0x7fffffff) / 0x7fffffff;
}

/** Stops the program for `fromMs` to `toMs` about every `everyMs`. */
export function stalls(
  everyMs: number,
  fromMs: number,
  toMs: number,
  random: () => number,
): NonNullable<Machine["stallMs"]> {
  let dueMs = everyMs;
  return (nowMs) => {
    if (nowMs < dueMs) return 0;
    dueMs = nowMs + everyMs * (0.5 + random());
    return fromMs + (toMs - fromMs) * random();
  };
}

/** The fullest 100 ms of what was handed on. */
export class Windows {
  readonly #bins: number[] = [];
  add(atMs: number, bytes: number): void {
    const bin = Math.trunc(atMs);
    this.#bins[bin] = (this.#bins[bin] ?? 0) + bytes;
  }
  get most(): number {
    let most = 0;
    let sum = 0;
    for (let at = 0; at < this.#bins.length; at++) {
      sum += (this.#bins[at] ?? 0) - (this.#bins[at - 100] ?? 0);
      most = Math.max(most, sum);
    }
    return most;
  }
}

/** A flow on its way: 0 bytes: it reads next; else it asks to pass. */
class Runner {
  readonly flow: Flow;
  atMs = 0;
  pieceBytes = 0;

  constructor(one: Flow) {
    this.flow = one;
  }

  /** For how many ms its piece is held; 0: it may go. */
  ask(nowMs: number): number {
    const { slots, readBytes } = this.flow;
    let holdMs = 0;
    if (this.pieceBytes === 0) {
      this.pieceBytes = Math.min(readBytes, ...slots.map(({ bucket }) => bucket.pieceBytes));
      for (const slot of slots) holdMs = Math.max(holdMs, slot.bucket.take(slot, this.pieceBytes, nowMs));
    }
    if (holdMs > 0) return holdMs;
    for (const slot of slots) holdMs = Math.max(holdMs, slot.bucket.closedMs(slot, this.pieceBytes, nowMs));
    return holdMs;
  }

  sent(nowMs: number): void {
    for (const slot of this.flow.slots) slot.bucket.sent(slot, nowMs);
  }

  go(nowMs: number): void {
    for (const slot of this.flow.slots) slot.bucket.pass(slot, this.pieceBytes, nowMs);
    this.flow.moved += this.pieceBytes;
  }
}

/** Streams that always have something to say, from 0 on; gives the fullest 100 ms. */
export function simulate(flows: readonly Flow[], seconds: number, machine: Machine = {}): number {
  const { lateMs = () => 0, writeMs, readMs = () => 0.01, stallMs = () => 0 } = machine;
  const runners = flows.map((one) => new Runner(one));
  const windows = new Windows();
  for (let nowMs = 0; ;) {
    let next = runners[0] as Runner;
    for (const one of runners) if (one.atMs < next.atMs) next = one;
    nowMs = Math.max(nowMs, next.atMs);
    nowMs += stallMs(nowMs);
    if (nowMs >= seconds * 1000) return windows.most;
    if (next.pieceBytes === 0) next.sent(nowMs);
    const holdMs = next.ask(nowMs);
    if (holdMs > 0) {
      next.atMs = nowMs + Math.trunc(holdMs) + lateMs(); // the runtime's timers cut fractions off
      continue;
    }
    next.go(nowMs);
    if (writeMs === undefined) next.sent(nowMs);
    const writtenMs = nowMs + (writeMs?.() ?? 0);
    windows.add(writtenMs, next.pieceBytes);
    next.pieceBytes = 0;
    next.atMs = writtenMs + readMs();
  }
}

export const movedBy = (flows: readonly Flow[]): number => flows.reduce((sum, one) => sum + one.moved, 0);

/** Jain's index: 1 where all shares are equal. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  return sum ** 2 / (shares.length * shares.reduce((a, b) => a + b * b, 0));
}
