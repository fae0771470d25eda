import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

export interface Waiting {
  /** Between two looks. */
  readonly everyMs?: number;
  /** Only there to end a test that fails. */
  readonly withinMs?: number;
}

/** Looks until it is so; `what` must come is named where it does not. */
export async function until(
  what: string | (() => string),
  holds: () => boolean | Promise<boolean>,
  { everyMs = 20, withinMs = 15_000 }: Waiting = {},
): Promise<void> {
  for (const endMs = performance.now() + withinMs; !(await holds()); await delay(everyMs))
    assert.ok(performance.now() < endMs, `in vain: ${typeof what === "string" ? what : what()}`);
}
