import { Sweep } from "#relay/sweep.ts";

/** A sweep whose time the test moves. */
export function handSweep(): { readonly sweep: Sweep; readonly advance: (ms: number) => void } {
  let nowMs = 0;
  const ticks = new Set<() => void>();
  const sweep = new Sweep({
    now: () => nowMs,
    every: (_, on) => {
      ticks.add(on);
      return { [Symbol.dispose]: () => void ticks.delete(on) };
    },
  });
  return {
    sweep,
    advance(ms) {
      nowMs += ms;
      for (const tick of ticks) tick();
    },
  };
}
