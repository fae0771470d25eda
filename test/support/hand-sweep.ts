import { Sweep } from "#relay/sweep.ts";

/** A sweep whose time the test moves. */
export function handSweep(): { readonly sweep: Sweep; readonly advance: (ms: number) => void } {
  let nowMs = 0;
  let tick = (): void => {};
  const sweep = new Sweep({
    now: () => nowMs,
    every: (_, on) => {
      tick = on;
      return { [Symbol.dispose]() {} };
    },
  });
  return {
    sweep,
    advance(ms) {
      nowMs += ms;
      tick();
    },
  };
}
