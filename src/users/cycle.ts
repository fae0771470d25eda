/** Usage by calendar cycle, in UTC. */
import type { Direction } from "#core/meter.ts";
import type { QuotaCycle } from "#core/users.ts";

const DAY_SECONDS = 86_400;
const WEEK_SECONDS = 7 * DAY_SECONDS;
/** 1970 began on a Thursday; weeks begin on Monday. */
const FIRST_MONDAY_SECONDS = 4 * DAY_SECONDS;

/** Unix seconds of the cycle that holds this moment: its first, and the first of the next. */
export function cycleAt(cycle: QuotaCycle, atSeconds: number): readonly [start: number, end: number] {
  if (cycle === "month") {
    const date = new Date(atSeconds * 1000);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    return [Date.UTC(year, month, 1) / 1000, Date.UTC(year, month + 1, 1) / 1000];
  }
  const [length, origin] = cycle === "day" ? [DAY_SECONDS, 0] : [WEEK_SECONDS, FIRST_MONDAY_SECONDS];
  const start = Math.floor((atSeconds - origin) / length) * length + origin;
  return [start, start + length];
}

/** Start, upload and download of one cycle. */
export type StoredCycle = readonly [start: number, upload: number, download: number];

interface Cycle {
  readonly start: number;
  upload: number;
  download: number;
}

/** Cycles that are remembered; the one longest unused goes first. */
const MOST_CYCLES = 4;

/**
 * What was used in each cycle that the clock has shown. A clock that jumps ahead and back finds the usage that it left,
 * so a wrong date frees no quota. A date before every known cycle (a machine whose clock starts in 1970) continues the
 * newest cycle.
 */
export class CycleUsage {
  readonly cycle: QuotaCycle;
  /** The one used last is at the end. */
  readonly #cycles: Cycle[];
  #current: Cycle | null = null;
  #fromSeconds = 0;
  #toSeconds = 0;

  constructor(cycle: QuotaCycle, stored: readonly StoredCycle[] = []) {
    this.cycle = cycle;
    this.#cycles = stored
      .slice(-MOST_CYCLES)
      .map(([start, upload, download]) => ({ start, upload, download }));
  }

  add(direction: Direction, bytes: number, nowSeconds: number): void {
    const current = this.at(nowSeconds);
    current[direction] = Math.max(0, Math.min(current[direction] + bytes, Number.MAX_SAFE_INTEGER));
  }

  /** The usage that counts now. */
  at(nowSeconds: number): { upload: number; download: number } {
    if (this.#current === null || nowSeconds < this.#fromSeconds || nowSeconds >= this.#toSeconds) {
      const [start, end] = cycleAt(this.cycle, nowSeconds);
      this.#fromSeconds = start;
      this.#toSeconds = end;
      this.#current = this.#find(start);
    }
    return this.#current;
  }

  /** When the clock's present cycle ends. */
  endAt(nowSeconds: number): number {
    return cycleAt(this.cycle, nowSeconds)[1];
  }

  store(): readonly StoredCycle[] {
    return this.#cycles.map(({ start, upload, download }) => [start, upload, download]);
  }

  #find(start: number): Cycle {
    const known = this.#cycles.find((one) => one.start === start) ?? this.#laterThan(start);
    const found = known ?? { start, upload: 0, download: 0 };
    const at = this.#cycles.indexOf(found);
    if (at >= 0) this.#cycles.splice(at, 1);
    else if (this.#cycles.length === MOST_CYCLES) this.#cycles.shift();
    this.#cycles.push(found);
    return found;
  }

  /** The newest, where all that is known is later than this. */
  #laterThan(start: number): Cycle | null {
    let newest: Cycle | null = null;
    for (const one of this.#cycles) {
      if (one.start < start) return null;
      if (newest === null || one.start > newest.start) newest = one;
    }
    return newest;
  }
}
