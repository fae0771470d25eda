import type { Ledger, Meter } from "#core/meter.ts";

/** Never holds, never drops. What it is asked to count is counted by the live table. */
const UNLIMITED: Meter = {
  free: true,
  pieceBytes: Number.MAX_SAFE_INTEGER,
  charge: () => 0,
  pass: () => 0,
  correct() {},
  admit: () => true,
  [Symbol.dispose]() {},
};

/** The ledger of a core without traffic control. */
export function countingLedger(): Ledger {
  return { open: () => UNLIMITED };
}
