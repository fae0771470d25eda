/**
 * Loaded into the measured core (NODE_OPTIONS=--import): how late its event loop is. At each SIGWINCH it writes what it
 * has seen since the last one to WEIR_PROBE_FILE, in ms, and begins anew.
 */
import { renameSync, writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const RESOLUTION_MS = 1;
const file = process.env.WEIR_PROBE_FILE;

if (isMainThread && file !== undefined) {
  const seen = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  seen.enable();
  process.on("SIGWINCH", () => {
    const ms = (ns) => Math.max(0, ns / 1e6 - RESOLUTION_MS);
    const found = { p50: ms(seen.percentile(50)), p99: ms(seen.percentile(99)), worst: ms(seen.max) };
    writeFileSync(`${file}.new`, JSON.stringify(found));
    renameSync(`${file}.new`, file);
    seen.reset();
  });
}
