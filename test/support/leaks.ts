/** Finds what a test left open: sockets, timers, child processes of this process. */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

/** Resources that come and go with the runtime and say nothing about a leak. */
const IGNORED = new Set(["PipeWrap", "TTYWrap", "MessagePort", "FSReqPromise", "FSReqCallback"]);
const TIMEOUT_MS = 5_000;

function count(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo())
    if (!IGNORED.has(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** Taken before; the returned check fails where more is open than then. A close under way is given some time. */
export function watchLeaks(): () => Promise<void> {
  const before = count();
  return async () => {
    const deadline = performance.now() + TIMEOUT_MS;
    for (;;) {
      const more = [...count()].filter(([kind, open]) => open > (before.get(kind) ?? 0));
      if (more.length === 0) return;
      if (performance.now() > deadline) {
        const text = more.map(([kind, open]) => `${kind} ${before.get(kind) ?? 0} → ${open}`);
        assert.fail(`left open: ${text.join(", ")}`);
      }
      await delay(20); // the delay's own timer has ended when the next count is taken
    }
  };
}
