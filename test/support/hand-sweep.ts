import { IdleTimers } from "#dataplane/idle-timers.ts";

/** What the timers' own period is. */
const STEP_MS = 1_000;

/** Timers whose time the test moves, in steps, as an event loop does that is not held up. */
export function handSweep(): {
  readonly timers: IdleTimers;
  readonly advance: (ms: number) => void;
  /** With no walk yet. */
  readonly moveClock: (ms: number) => void;
} {
  let nowMs = 0;
  const ticks = new Set<() => void>();
  const timers = new IdleTimers({
    now: () => nowMs,
    every: (_, on) => {
      ticks.add(on);
      return { [Symbol.dispose]: () => void ticks.delete(on) };
    },
  });
  return {
    timers,
    advance(ms) {
      for (let left = ms; left > 0; left -= STEP_MS) {
        nowMs += Math.min(left, STEP_MS);
        for (const tick of ticks) tick();
      }
    },
    moveClock: (ms) => void (nowMs += ms),
  };
}
