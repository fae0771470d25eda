/** A crowd that never finishes its requests costs those who do nothing that they would notice. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { liveController } from "../support/live-controller.ts";
import { latencies, quantile, slowClients } from "../support/slow-clients.ts";

const CROWD = 2000;
/** The aim is 100 ms; the machine that runs the tests has other work too. */
const BOUND_MS = 1000;

/** Both ends of every connection live in this process. */
const NEEDED_FILES = 2 * CROWD + 200;

/** Node takes all that the system allows; false: it is enough. */
function tooFewFiles(): string | false {
  if (process.platform !== "linux") return false;
  const [, hard] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  const isEnough = hard === "unlimited" || Number(hard) >= NEEDED_FILES;
  return isEnough
    ? false
    : `SKIP ${CROWD} slow clients: ${NEEDED_FILES} open files are needed, ${hard} are allowed`;
}

const TITLE = `${CROWD} clients that trickle their headers leave others served`;
test(TITLE, { skip: tooFewFiles() }, async (context) => {
  await using live = await liveController();
  using crowd = await slowClients(live.port, CROWD);
  const connected = crowd.open;
  const took = await latencies(live.port, 300);
  const p99Ms = quantile(took, 0.99);
  context.diagnostic(
    `${connected} slow clients: median ${quantile(took, 0.5).toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`,
  );
  assert.equal(connected, CROWD);
  assert.ok(p99Ms < BOUND_MS, `p99 ${p99Ms} ms`);
});
