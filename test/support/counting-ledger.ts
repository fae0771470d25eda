import type { Ledger } from "#core/meter.ts";
import { unlimited } from "./relayed.ts";

/** The ledger of a core without traffic control. */
export function countingLedger(): Ledger {
  return { open: () => unlimited };
}
