/**
 * Loaded into the measured core (NODE_OPTIONS=--import) and so into each of its threads: notes how many bytes sockets are
 * given in each millisecond, by the runtime's streams and by the calls of workers, and leaves a summary behind when
 * the process ends. Handshakes and answers of proxies are smaller than any piece.
 *
 * WEIR_PROBE_FILE: where the summary goes. WEIR_PROBE_CAP: bytes; what is written after so many is told apart.
 * WEIR_PROBE_KILL_MS: the process is killed so long after the cap, by a thread that nothing in the main one can hold up.
 */
import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { getEnvironmentData, isMainThread, setEnvironmentData, Worker } from "node:worker_threads";

const WINDOW_MS = 100;
const SMALLEST_BYTES = 400;
const MOST_MS = 120_000;
const LATE_MS = 2_000;
const NAME = "weir write probe";
const { WEIR_PROBE_FILE, WEIR_PROBE_CAP, WEIR_PROBE_KILL_MS } = process.env;
const cap = BigInt(WEIR_PROBE_CAP ?? Number.MAX_SAFE_INTEGER);

// TOTAL(8) START(8) CAPPED(8) LATE(4 each) BINS(4 each): what all threads add to; times in ms of the monotonic clock
const memory = isMainThread ? new SharedArrayBuffer(24 + (LATE_MS + MOST_MS) * 4) : getEnvironmentData(NAME);
const total = new BigInt64Array(memory, 0, 1);
const times = new BigInt64Array(memory, 8, 2);
/** After the cap only. */
const late = new Int32Array(memory, 24, LATE_MS);
const bins = new Int32Array(memory, 24 + LATE_MS * 4, MOST_MS);
const monotonicMs = () => process.hrtime.bigint() / 1_000_000n;

function note(bytes) {
  const nowMs = monotonicMs();
  const at = Number(nowMs - times[0]);
  if (at >= MOST_MS) return;
  Atomics.add(bins, at, bytes);
  const cappedMs = Atomics.load(times, 1);
  if (cappedMs > 0n) Atomics.add(late, Math.min(Number(nowMs - cappedMs), LATE_MS - 1), bytes);
  const before = Atomics.add(total, 0, BigInt(bytes));
  if (before >= cap || before + BigInt(bytes) < cap) return;
  Atomics.store(times, 1, nowMs);
}

if (isMainThread) {
  times[0] = monotonicMs();
  setEnvironmentData(NAME, memory);
  const { write } = Socket.prototype;
  Socket.prototype.write = function (chunk, ...rest) {
    if (chunk?.length >= SMALLEST_BYTES) note(chunk.length);
    return write.call(this, chunk, ...rest);
  };
  process.on("exit", leaveSummary);
  if (WEIR_PROBE_KILL_MS !== undefined) killAfterCap();
} else await watchCalls();

/** Of a worker: every send, and every splice out of a pipe. */
async function watchCalls() {
  const { RelayCalls } = await import(new URL("../../src/platform/linux/relay-calls.ts", import.meta.url));
  const { send, splice, openPipe } = RelayCalls.prototype;
  const pipes = new Set();
  RelayCalls.prototype.openPipe = function () {
    const pipe = openPipe.call(this);
    if (pipe !== null) pipes.add(pipe.readEnd).delete(pipe.writeEnd);
    return pipe;
  };
  RelayCalls.prototype.send = function (fd, size) {
    const bytes = send.call(this, fd, size);
    if (bytes >= SMALLEST_BYTES) note(bytes);
    return bytes;
  };
  RelayCalls.prototype.splice = function (from, to, size) {
    const bytes = splice.call(this, from, to, size);
    if (bytes > 0 && pipes.has(from)) note(bytes);
    return bytes;
  };
}

function killAfterCap() {
  new Worker(
    `const { workerData: { memory, afterMs } } = require("node:worker_threads");
     const capped = new BigInt64Array(memory, 16, 1);
     const wait = new Int32Array(new SharedArrayBuffer(4));
     while (Atomics.load(capped, 0) === 0n) Atomics.wait(wait, 0, 0, 1);
     Atomics.wait(wait, 0, 0, afterMs);
     process.kill(process.pid, "SIGKILL");`,
    { eval: true, execArgv: [], env: {}, workerData: { memory, afterMs: Number(WEIR_PROBE_KILL_MS) } },
  ).unref();
}

function leaveSummary() {
  if (WEIR_PROBE_FILE === undefined || total[0] === 0n) return;
  let most = 0;
  let sum = 0;
  for (let at = 0; at < MOST_MS; at++) {
    sum += bins[at] - (at >= WINDOW_MS ? bins[at - WINDOW_MS] : 0);
    most = Math.max(most, sum);
  }
  const between = (from, to) => late.subarray(from, to).reduce((a, b) => a + b, 0);
  const capped = times[1] === 0n ? null : { first50Ms: between(0, 50), nextSecond: between(50, 1050) };
  writeFileSync(WEIR_PROBE_FILE, JSON.stringify({ most, total: Number(total[0]), capped }));
}
