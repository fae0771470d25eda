/**
 * npm run soak -- [MINUTES] [FLOWS]: connections that end badly, a round of FLOWS (10,000) after the other for so many
 * minutes (10), by both ways of relaying and with limits in every other round. A line a round with what is open and how
 * much memory it takes; fails at the first wrong byte or count, where descriptors do not come back, and where memory
 * in the last ten of thirty minutes or more, under load or at rest, is more than 1.05 of that in the second ten.
 */
import { readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { TlsLibrary } from "#platform/tls.ts";
import { MemorySamples, shownGrowth } from "../test/support/memory-samples.ts";
import { chaos } from "../test/support/relay-chaos.ts";

const [minutes = 10, flows = 10_000] = process.argv.slice(2).map(Number);
/** The pipes of the threads go some seconds behind the last connection. */
const SETTLE_MS = 8_000;
const MOST_GROWTH = 1.05;

const descriptors = (): number => readdirSync("/proc/self/fd").length;

const engine = await openWorkerBackend({
  tlsLibrary: new TlsLibrary(),
  onDeath(why) {
    throw new Error(`a worker died: ${why}`);
  },
});
// The first listening socket makes the runtime open what it keeps for good.
await chaos({ flows: 10, parallel: 1, seed: 1, backend: engine, limited: false });
await delay(SETTLE_MS);
const memory = new MemorySamples();
const untilMs = performance.now() + minutes * 60_000;
const before = descriptors();
for (let round = 0; round === 0 || performance.now() < untilMs; round++) {
  const backend = round % 4 === 3 ? null : engine;
  const limited = round % 2 === 1;
  const seed = Math.floor(Math.random() * 2 ** 31);
  const startMs = performance.now();
  const { faults, whole, bytes } = await chaos({ flows, parallel: 200, seed, backend, limited });
  const seconds = (performance.now() - startMs) / 1_000;
  for (const closeBy = performance.now() + SETTLE_MS; descriptors() > before && performance.now() < closeBy;)
    await delay(100);
  const what = `${backend === null ? "pump" : "engine"}, ${limited ? "limited" : "free"}`;
  const moved = `${flows} flows (${whole} whole), ${(bytes / 2 ** 20).toFixed(0)} MiB in ${seconds.toFixed(1)} s`;
  const { loadMiB, restMiB } = await memory.take();
  const rss = `${loadMiB.toFixed(0)} MiB resident, ${restMiB.toFixed(0)} at rest`;
  console.log(`${round}: ${what}: ${moved}; ${descriptors()} descriptors (${before} before), ${rss}`);
  if (faults.length > 0 || descriptors() > before) {
    console.error(`seed ${seed}: ${faults.length} faults\n${faults.slice(0, 20).join("\n")}`);
    process.exitCode = 1;
    break;
  }
}
await engine[Symbol.asyncDispose]();
const { growth } = memory;
if (growth !== null) {
  console.log(shownGrowth(growth));
  const { early, late } = growth;
  const grows = (["loadMiB", "restMiB"] as const).some((of) => late[of] > early[of] * MOST_GROWTH);
  if (grows) process.exitCode = 1;
}
