import { PassingMap } from "#lib/passing-map.ts";

/**
 * One timer for all idle timeouts: thousands of connections cost one short walk in each period, and nothing per chunk.
 */
export interface IdleEntry {
  /** Reading of `IdleTimers.nowMs` when something last happened. */
  activeAtMs: number;
  /** Idle for longer than this: `expire` is called, once. Infinity: never. */
  idleMs: number;
  /** Called before the two are compared, once a period: brings them up to date. */
  look?(): void;
  expire(): void;
}

const PERIOD_MS = 1_000;
const SLOW_TICK_MS = 5_000;
/** Periods. A walk that comes later than that has stood still with the event loop, and so has every read. */
const LATE = 2;
const LONGEST_WALK_MS = 20;

export interface IdleTimersClock {
  now(): number;
  /** Calls back every `periodMs` until disposed; must not keep the process alive. */
  every(periodMs: number, on: () => void): Disposable;
}

const SYSTEM_CLOCK: IdleTimersClock = {
  now: () => Math.trunc(performance.now()), // thousands keep a reading, and a whole number needs no memory of its own
  every(periodMs, on) {
    const timer = setInterval(on, periodMs).unref();
    return { [Symbol.dispose]: () => clearInterval(timer) };
  },
};

export class IdleTimers {
  /** A clock that is good enough for idleness: it moves once a period. */
  nowMs: number;
  readonly #idles = new PassingMap<IdleEntry, null>();
  readonly #clock: IdleTimersClock;
  readonly #periodMs: number;
  #slow: IdleTimers | null = null;
  #ticking: Disposable | null = null;
  #walkEndsAtMs = 0;
  #wasLate = false;

  constructor(clock: IdleTimersClock = SYSTEM_CLOCK, periodMs = PERIOD_MS) {
    this.#clock = clock;
    this.#periodMs = periodMs;
    this.nowMs = clock.now();
  }

  /** For entries that need a look only every five seconds: thousands of idle connections. */
  get slow(): IdleTimers {
    return (this.#slow ??= new IdleTimers(this.#clock, SLOW_TICK_MS));
  }

  add(idle: IdleEntry): void {
    idle.activeAtMs = this.#clock.now(); // the last walk may be a whole period ago
    if (this.#ticking === null) {
      this.nowMs = idle.activeAtMs;
      this.#wasLate = false;
      this.#ticking = this.#clock.every(this.#periodMs, () => this.#walk());
    }
    this.#idles.set(idle, null);
  }

  /** Something has just happened. `nowMs` may be older than the entry, where the event loop has stood still. */
  touch(idle: IdleEntry): void {
    if (idle.activeAtMs < this.nowMs) idle.activeAtMs = this.nowMs;
  }

  /** With the last one the timer stops. */
  remove(idle: IdleEntry): void {
    this.#idles.delete(idle);
    if (this.#idles.size > 0) return;
    this.#ticking?.[Symbol.dispose]();
    this.#ticking = null;
  }

  /** Of this very moment. */
  get exactMs(): number {
    return this.#clock.now();
  }

  /** For upkeep inside `look` that can as well be done in a later walk: the event loop has other things to do. */
  get hasTime(): boolean {
    return this.#clock.now() < this.#walkEndsAtMs;
  }

  /**
   * Timers come before sockets in a turn of the event loop: behind a turn that lasted for a minute, bytes that have waited
   * all that time are still to be read. So the walk that comes late expires nothing, and leaves that to the next one.
   */
  #walk(): void {
    const nowMs = this.#clock.now();
    const isLate = !this.#wasLate && nowMs - this.nowMs > this.#periodMs * LATE;
    this.#wasLate = isLate;
    this.nowMs = nowMs;
    this.#walkEndsAtMs = nowMs + LONGEST_WALK_MS;
    this.#idles.forEachKey((idle) => {
      idle.look?.();
      if (isLate || nowMs - idle.activeAtMs < idle.idleMs) return;
      this.remove(idle);
      idle.expire();
    });
  }
}
