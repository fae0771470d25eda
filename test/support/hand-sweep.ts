import { IdleTimers } from "#dataplane/idle-timers.ts";

/** A sweep whose time the test moves. */
export function handSweep(): { readonly timers: IdleTimers; readonly advance: (ms: number) => void } {
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
      nowMs += ms;
      for (const tick of ticks) tick();
    },
  };
}
