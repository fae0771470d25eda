/** The clocks of traffic control: rates need one that never jumps, quotas one that sleep does not stop, reports the one that people read. */
import type { SteadyClocks } from "#lib/steady-time.ts";

export interface GovernanceClock extends SteadyClocks {}

/** Those of the process; `boot` is the system's. */
export function systemClock(boot: GovernanceClock["boot"]): GovernanceClock {
  return { monotonicMs: () => performance.now(), wallMs: () => Date.now(), boot };
}
