/**
 * What the relay moves, how fast it takes connections, what latency it adds and what an idle connection weighs, beside
 * no proxy at all and HAProxy in the same interleaved run. Load and sink are processes of their own; all share the
 * machine, so ratios and CPU time say more than the absolute figures.
 */
import { once } from "node:events";
import type { ChildProcess } from "node:child_process";
import { cpus } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { Task, TaskResult } from "./relay-peer.ts";
import {
  cpuSeconds,
  endOf,
  forkPeer,
  haproxy,
  noProxy,
  relayAlone,
  residentBytes,
  weir,
} from "./relay-subjects.ts";
import type { Subject } from "./relay-subjects.ts";

export const NAME = "relay";

export type Out = (line: string) => void;

const ROUNDS = 3;
const THROUGHPUT_MS = 1_500;
const CONNECTIONS_MS = 1_500;
const LATENCY_ROUNDS = 5_000;
const IDLE_COUNTS = [1_000, 9_000];

interface Column {
  readonly title: string;
  readonly digits: number;
}

/** What one subject did in one round. `rate`: larger is better. */
interface Row {
  readonly rate: number;
  readonly cells: readonly number[];
}

interface Measurement {
  readonly title: string;
  readonly columns: readonly Column[];
  run(load: ChildProcess, subject: Subject): Promise<Row>;
}

const NO_CPU = Number.NaN;

async function ask(load: ChildProcess, task: Task): Promise<TaskResult> {
  load.send(task);
  return ((await once(load, "message")) as [TaskResult])[0];
}

const throughput = (streams: number): Measurement => ({
  title: `throughput, ${streams} stream${streams > 1 ? "s" : ""}`,
  columns: [
    { title: "Gbit/s", digits: 2 },
    { title: "CPU s/GiB", digits: 3 },
  ],
  async run(load, { port, pid }) {
    const before = cpuSeconds(pid);
    const { amount, seconds } = await ask(load, { kind: "throughput", port, streams, ms: THROUGHPUT_MS });
    // The CPU time covers the 200 ms before the count begins, too: the same share for everyone.
    const gib = (amount / 2 ** 30) * ((seconds + 0.2) / seconds);
    const rate = (amount * 8) / seconds / 1e9;
    return { rate, cells: [rate, pid === null ? NO_CPU : (cpuSeconds(pid) - before) / gib] };
  },
});

const connections: Measurement = {
  title: "new connections, 32 at a time",
  columns: [
    { title: "per second", digits: 0 },
    { title: "CPU µs each", digits: 1 },
  ],
  async run(load, { port, pid }) {
    const before = cpuSeconds(pid);
    const result = await ask(load, { kind: "connections", port, parallel: 32, ms: CONNECTIONS_MS });
    const rate = result.amount / result.seconds;
    const cpu = pid === null ? NO_CPU : ((cpuSeconds(pid) - before) * 1e6) / result.amount;
    return { rate, cells: [rate, cpu] };
  },
};

const latency: Measurement = {
  title: "round trip of 512 bytes",
  columns: [
    { title: "p50 µs", digits: 0 },
    { title: "p99 µs", digits: 0 },
    { title: "CPU µs each", digits: 1 },
  ],
  async run(load, { port, pid }) {
    const before = cpuSeconds(pid);
    const { samples = [] } = await ask(load, { kind: "latency", port, rounds: LATENCY_ROUNDS });
    const at = (share: number): number => samples[Math.floor(samples.length * share)] ?? Number.NaN;
    const cpu = pid === null ? NO_CPU : ((cpuSeconds(pid) - before) * 1e6) / LATENCY_ROUNDS;
    return { rate: 1 / at(0.5), cells: [at(0.5), at(0.99), cpu] };
  },
};

const idle = (count: number): Measurement => ({
  title: `${count} idle connections`,
  columns: [
    { title: "KiB each", digits: 1 },
    { title: "CPU µs/s at rest", digits: 0 },
  ],
  async run(load, { port, pid }) {
    const before = residentBytes(pid);
    await ask(load, { kind: "hold", port, count });
    await delay(300);
    const kib = (residentBytes(pid) - before) / 1024 / count;
    const cpuBefore = cpuSeconds(pid);
    await delay(1_000);
    const atRest = (cpuSeconds(pid) - cpuBefore) * 1e6;
    await ask(load, { kind: "release" });
    await delay(300);
    return pid === null ? { rate: NO_CPU, cells: [NO_CPU, NO_CPU] } : { rate: 1 / kib, cells: [kib, atRest] };
  },
});

const SUBJECTS = [noProxy, weir, relayAlone, haproxy];

/** One line a result. A ratio is the median over the rounds of weir against that subject in the same round. */
export async function run(out: Out): Promise<void> {
  const sink = await forkPeer("./relay-peer.ts", ["sink"]);
  const { child: load } = await forkPeer("./relay-peer.ts", ["load"]);
  try {
    out(`relay: ${cpus().length} × ${cpus()[0]?.model}, ${process.version}, ${ROUNDS} interleaved rounds`);
    for (const streams of [1, 8]) await compare(throughput(streams), ROUNDS, load, sink.port, out);
    await compare(connections, ROUNDS, load, sink.port, out);
    await compare(latency, ROUNDS, load, sink.port, out);
    for (const count of IDLE_COUNTS) await compare(idle(count), 1, load, sink.port, out);
  } finally {
    await endOf(load);
    await endOf(sink.child);
  }
}

async function compare(
  measurement: Measurement,
  rounds: number,
  load: ChildProcess,
  sinkPort: number,
  out: Out,
): Promise<void> {
  const { title, columns } = measurement;
  await using opened = new AsyncDisposableStack();
  const subjects: Subject[] = [];
  for (const open of SUBJECTS) {
    const subject = await open(sinkPort); // fresh processes: what came before left no memory behind
    if (subject === null) out("SKIP relay HAProxy: haproxy is not on the PATH (Debian package haproxy)");
    else subjects.push(opened.use(subject));
  }
  const rows = new Map<Subject, Row[]>(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < rounds; round++)
    for (const subject of subjects) rows.get(subject)?.push(await measurement.run(load, subject));
  const own = rows.get(subjects.find(({ name }) => name === "weir") as Subject) ?? [];
  for (const [{ name }, of] of rows) {
    const cells = columns.map(({ title: unit, digits }, at) => {
      const value = median(of.map((row) => row.cells[at] ?? Number.NaN));
      return `${unit} ${Number.isNaN(value) ? "–" : value.toFixed(digits)}`;
    });
    const ratio = median(own.map((row, at) => row.rate / (of[at]?.rate ?? Number.NaN)));
    const versus = name === "weir" || Number.isNaN(ratio) ? "" : `, weir is ${ratio.toFixed(2)} × this`;
    out(`${title}: ${name}: ${cells.join(", ")}${versus}`);
  }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

if (import.meta.main) await run((line) => console.log(line));
