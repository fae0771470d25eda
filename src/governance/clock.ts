/** Two clocks: rates need one that never jumps, quotas and reports the one that people read. */
export interface GovernanceClock {
  /** Never goes back, is never set. */
  monotonicMs(): number;
  /** Unix time; may be set to anything at any moment. */
  wallMs(): number;
}

export const SYSTEM_CLOCK: GovernanceClock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
};
