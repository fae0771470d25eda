/**
 * Loaded into the measured core (NODE_OPTIONS=--import): notes how many bytes sockets are given in each millisecond, and
 * leaves a summary behind when the process ends. Handshakes and answers of proxies are smaller than any piece.
 *
 * WEIR_PROBE_FILE: where the summary goes. WEIR_PROBE_CAP: bytes; what is written after so many is told apart.
 * WEIR_PROBE_KILL_MS: the process is killed so long after the cap, by a thread that nothing in the main one can hold up.
 */
import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { Worker } from "node:worker_threads";

const WINDOW_MS = 100;
const SMALLEST_BYTES = 400;
const { WEIR_PROBE_FILE, WEIR_PROBE_CAP, WEIR_PROBE_KILL_MS } = process.env;
const cap = Number(WEIR_PROBE_CAP ?? Infinity);
const bins = new Float64Array(120_000);
/** After the cap only. */
const late = new Float64Array(2_000);
let total = 0;
let cappedAtMs = -1;
const signal = new Int32Array(new SharedArrayBuffer(4));
if (WEIR_PROBE_KILL_MS !== undefined)
  new Worker(
    `const { workerData: { signal, afterMs } } = require("node:worker_threads");
     Atomics.wait(signal, 0, 0);
     Atomics.wait(signal, 0, 1, afterMs);
     process.kill(process.pid, "SIGKILL");`,
    { eval: true, execArgv: [], env: {}, workerData: { signal, afterMs: Number(WEIR_PROBE_KILL_MS) } },
  ).unref();
const { write } = Socket.prototype;

Socket.prototype.write = function (chunk, ...rest) {
  const nowMs = performance.now();
  const at = Math.trunc(nowMs);
  if (chunk?.length >= SMALLEST_BYTES && at < bins.length) {
    bins[at] += chunk.length;
    total += chunk.length;
    if (cappedAtMs >= 0) late[Math.trunc(nowMs - cappedAtMs)] += chunk.length;
    if (total >= cap && cappedAtMs < 0) {
      cappedAtMs = nowMs;
      Atomics.store(signal, 0, 1);
      Atomics.notify(signal, 0);
    }
  }
  return write.call(this, chunk, ...rest);
};

process.on("exit", () => {
  if (WEIR_PROBE_FILE === undefined || total === 0) return;
  let most = 0;
  let sum = 0;
  for (let at = 0; at < bins.length; at++) {
    sum += bins[at] - (at >= WINDOW_MS ? bins[at - WINDOW_MS] : 0);
    most = Math.max(most, sum);
  }
  const between = (from, to) => late.subarray(from, to).reduce((a, b) => a + b, 0);
  const capped = cappedAtMs < 0 ? null : { first50Ms: between(0, 50), nextSecond: between(50, 1050) };
  writeFileSync(WEIR_PROBE_FILE, JSON.stringify({ most, total, capped }));
});
