/** Unix time as it passes, whatever the system's clock is set to meanwhile: what rolling windows are measured by. */

/** Time since the machine was started, its sleep included. */
export interface BootClock {
  /** Another one after every start of the machine. */
  readonly id: string;
  nowMs(): number;
}

export interface SteadyClocks {
  /** Never goes back, is never set, may stand still while the machine sleeps. */
  monotonicMs(): number;
  /** Unix time; may be set to anything at any moment. */
  wallMs(): number;
  /** Null: the system has none, or its monotonic clock counts sleep already. */
  readonly boot: BootClock | null;
}

/** One moment by every clock, as it is stored: time of the line, Unix time, the machine's start and the time since. */
export type StoredMoment = readonly [timeMs: number, wallMs: number, boot: string, bootMs: number];

/** The clocks of the system drift by less. */
const SLEEP_MS = 1_000;
/** What a clock may lag behind the line and still be taken for right. */
const LAG_MS = 60_000;
/** A clock that shows an earlier date has not been set. */
const EARLIEST_MS = Date.UTC(2025, 0, 1);

const whole = Math.trunc;

/**
 * Begins as Unix time and is never set: it grows by what has really passed. A later process goes on from a stored moment.
 * Within one run of the machine it knows exactly how long it was not read; after that the system's clock has to tell, and
 * where that contradicts itself (a machine that starts in 1970) the pause counts as nothing. So what is measured by it can
 * stay too long after a wrong clock, and leaves too early only where the clock was ahead when the process began.
 */
export class SteadyTime {
  readonly #clocks: SteadyClocks;
  /** Ahead of the monotonic clock. */
  #aheadMs: number;
  /** How far the clock that counts sleep is ahead of the one that does not. */
  #sleptMs: number;
  #latestMs = -Infinity;
  #isOfLaterRun = false;
  #newestSeconds = -Infinity;

  constructor(clocks: SteadyClocks) {
    this.#clocks = clocks;
    this.#aheadMs = clocks.wallMs() - clocks.monotonicMs();
    this.#sleptMs = this.#bootAheadMs();
  }

  nowMs(): number {
    return this.#clocks.monotonicMs() + this.#aheadMs;
  }

  nowSeconds(): number {
    return Math.floor(this.nowMs() / 1000);
  }

  /** What the system's clock shows, or will show unless it is set, at this moment of the line. */
  wallSecondsAt(seconds: number): number {
    return seconds + Math.round((this.#clocks.wallMs() - this.nowMs()) / 1000);
  }

  /** To be called now and then: takes in what the machine has slept. */
  look(): void {
    const sleptMs = this.#bootAheadMs();
    if (sleptMs - this.#sleptMs < SLEEP_MS) return;
    this.#aheadMs += sleptMs - this.#sleptMs;
    this.#sleptMs = sleptMs;
  }

  /** Of several moments of one line the latest counts, in whatever order they come. Only before anything is measured. */
  goOnFrom([timeMs, wallMs, bootId, bootMs]: StoredMoment): void {
    if (timeMs <= this.#latestMs) return;
    this.#latestMs = timeMs;
    const { boot } = this.#clocks;
    const runMs = boot === null || boot.id !== bootId ? -1 : boot.nowMs() - bootMs;
    const wasRight = wallMs >= Math.max(timeMs - LAG_MS, EARLIEST_MS);
    this.#isOfLaterRun = boot !== null && runMs < 0;
    const passedMs = runMs >= 0 ? runMs : wasRight ? Math.max(0, this.#clocks.wallMs() - wallMs) : 0;
    this.#aheadMs = timeMs + passedMs - this.#clocks.monotonicMs();
    this.goOnBehind(this.#newestSeconds);
  }

  /**
   * It goes on from an earlier run of the machine. A moment is to be stored soon: until then the next process, too, would have
   * to believe the system's clock, which may have been set ahead meanwhile.
   */
  get isOfLaterRun(): boolean {
    return this.#isOfLaterRun;
  }

  /** The same for what was stored without a moment: nothing lies in the future. */
  goOnBehind(seconds: number): void {
    this.#newestSeconds = Math.max(this.#newestSeconds, seconds);
    this.#aheadMs = Math.max(this.#aheadMs, this.#newestSeconds * 1000 - this.#clocks.monotonicMs());
  }

  moment(): StoredMoment {
    const { boot } = this.#clocks;
    const nowMs = this.#clocks.monotonicMs();
    const bootMs = boot === null ? 0 : nowMs + this.#sleptMs;
    return [whole(nowMs + this.#aheadMs), whole(this.#clocks.wallMs()), boot?.id ?? "", whole(bootMs)];
  }

  #bootAheadMs(): number {
    const { boot } = this.#clocks;
    return boot === null ? 0 : boot.nowMs() - this.#clocks.monotonicMs();
  }
}
