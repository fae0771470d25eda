/**
 * What the relay moves, how fast it takes connections, what latency it adds and what an idle connection weighs, beside
 * no proxy at all, a bare pipe of the runtime, and what is installed of HAProxy, v2ray, Xray, sing-box and mihomo, in the
 * same interleaved run. Load and sink are
 * processes of their own; all share the machine, so ratios and CPU time say more than the absolute figures.
 */
import { once } from "node:events";
import type { ChildProcess } from "node:child_process";
import { cpus } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { Task, TaskResult } from "./relay-peer.ts";
import type { Handshake, SubjectAddress } from "./subject-address.ts";
import {
  barePipe,
  cpuSeconds,
  endOf,
  forkPeer,
  forkServer,
  haproxy,
  mihomo,
  noProxy,
  residentBytes,
  singBox,
  v2ray,
  weir,
  weirPortable,
  xray,
} from "./relay-subjects.ts";
import type { Subject } from "./relay-subjects.ts";

export const NAME = "relay";

export type Out = (line: string) => void;

const ROUNDS = 3;
/** Of short connections, which a neighbour on the machine disturbs most. */
const CONNECTION_ROUNDS = 7;
const THROUGHPUT_MS = 1_500;
const CONNECTIONS_MS = 1_500;
const LATENCY_MS = 1_500;
/** Not counted: programs that run day and night are measured, and what waits for others in between is compiled last. */
const WARM_ROUNDS = 40;

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
  readonly rounds: number;
  /** Only by those that speak it. */
  readonly by?: Handshake;
  /** Rounds that come first and are not counted: the first seconds belong to a compiler that works while it runs. */
  readonly warm?: number;
  run(load: ChildProcess, subject: Subject, sinkPort: number): Promise<Row>;
}

const NO_CPU = Number.NaN;

/** Fails where the load ends over it. */
export async function ask(load: ChildProcess, task: Task): Promise<TaskResult> {
  const answered = new AbortController();
  const { signal } = answered;
  const lost = once(load, "exit", { signal }).then((): never => {
    throw new Error("the load has ended; see above");
  });
  load.send(task);
  try {
    return ((await Promise.race([once(load, "message", { signal }), lost])) as [TaskResult])[0];
  } finally {
    answered.abort();
  }
}

const plain = ({ port }: Subject): SubjectAddress => ({ port, to: null });

const throughput = (streams: number, way: "down" | "up"): Measurement => ({
  title: `throughput ${way}, ${streams} stream${streams > 1 ? "s" : ""}`,
  rounds: ROUNDS,
  columns: [
    { title: "Gbit/s", digits: 2 },
    { title: "CPU s/GiB", digits: 3 },
  ],
  async run(load, subject) {
    const before = cpuSeconds(subject.pid);
    const task = { kind: "throughput", door: plain(subject), way, streams, ms: THROUGHPUT_MS } as const;
    const { amount, seconds } = await ask(load, task);
    // The CPU time covers the 300 ms before the count begins, too: the same share for everyone.
    const gib = (amount / 2 ** 30) * ((seconds + 0.3) / seconds);
    const cpu = subject.pid === null ? NO_CPU : (cpuSeconds(subject.pid) - before) / gib;
    const rate = (amount * 8) / 1e9 / seconds;
    return { rate, cells: [rate, cpu] };
  },
});

/** One that leads to the sink by itself, or is asked for it. */
const doorBy = (by: Handshake | null, subject: Subject, sinkPort: number): SubjectAddress =>
  by === null ? plain(subject) : { port: subject.asked[by] ?? 0, to: { by, port: sinkPort } };

/** Of a subject, since it had used `before` seconds. */
const cpuMicrosEach = ({ pid }: Subject, before: number, amount: number): number =>
  pid === null ? NO_CPU : ((cpuSeconds(pid) - before) * 1e6) / amount;

/** Of sorted samples the one behind such a share of them. */
const quantile = (samples: readonly number[], share: number): number =>
  samples[Math.floor(samples.length * share)] ?? Number.NaN;

const connections = (by: Handshake | null): Measurement => ({
  title: `new connections${by === null ? "" : ` by ${by}`}, 32 at a time`,
  rounds: CONNECTION_ROUNDS,
  warm: 6,
  ...(by === null ? {} : { by }),
  columns: [
    { title: "per second", digits: 0 },
    { title: "CPU µs each", digits: 1 },
  ],
  async run(load, subject, sinkPort) {
    const before = cpuSeconds(subject.pid);
    const task = { kind: "connections", parallel: 32, ms: CONNECTIONS_MS } as const;
    const { amount, seconds } = await ask(load, { ...task, door: doorBy(by, subject, sinkPort) });
    const rate = amount / seconds;
    return { rate, cells: [rate, cpuMicrosEach(subject, before, amount)] };
  },
});

const latency: Measurement = {
  title: "round trip of 512 bytes, 1,000 a second at most",
  rounds: CONNECTION_ROUNDS,
  warm: WARM_ROUNDS,
  columns: [
    { title: "p50 µs", digits: 0 },
    { title: "p99 µs", digits: 0 },
    { title: "CPU µs each", digits: 1 },
  ],
  async run(load, subject) {
    const before = cpuSeconds(subject.pid);
    const task = { kind: "latency", door: plain(subject), perSecond: 1_000, ms: LATENCY_MS } as const;
    const { amount, samples = [] } = await ask(load, task);
    const [half, most] = [quantile(samples, 0.5), quantile(samples, 0.99)];
    return { rate: 1 / half, cells: [half, most, cpuMicrosEach(subject, before, amount)] };
  },
};

const firstByte = (by: Handshake | null): Measurement => ({
  title: `first byte of a new connection${by === null ? "" : ` by ${by}`}, 2,000 a second`,
  rounds: CONNECTION_ROUNDS,
  warm: WARM_ROUNDS,
  ...(by === null ? {} : { by }),
  columns: [
    { title: "p50 µs", digits: 0 },
    { title: "p99 µs", digits: 0 },
    { title: "per second", digits: 0 },
    { title: "CPU µs each", digits: 1 },
  ],
  async run(load, subject, sinkPort) {
    const before = cpuSeconds(subject.pid);
    const task = { kind: "first byte", perSecond: 2_000, ms: CONNECTIONS_MS } as const;
    const door = doorBy(by, subject, sinkPort);
    const { amount, seconds, samples = [] } = await ask(load, { ...task, door });
    const [half, most] = [quantile(samples, 0.5), quantile(samples, 0.99)];
    const cpu = cpuMicrosEach(subject, before, amount);
    return { rate: 1 / half, cells: [half, most, amount / seconds, cpu] };
  },
});

const idle = (count: number, restMs: number): Measurement => ({
  title: `${count} idle connections`,
  rounds: 1,
  columns: [
    { title: "MiB without any", digits: 1 },
    { title: "KiB each", digits: 1 },
    { title: "% of a core at rest", digits: 2 },
  ],
  async run(load, subject) {
    const { pid } = subject;
    const before = residentBytes(pid);
    await ask(load, { kind: "hold", door: plain(subject), count });
    await delay(1_000);
    const kib = (residentBytes(pid) - before) / 1024 / count;
    const cpuBefore = cpuSeconds(pid);
    await delay(restMs);
    const atRest = ((cpuSeconds(pid) - cpuBefore) * 100_000) / restMs;
    await ask(load, { kind: "release", door: plain(subject) });
    await delay(300);
    const cells = pid === null ? [NO_CPU, NO_CPU, NO_CPU] : [before / 2 ** 20, kib, atRest];
    return { rate: 1 / kib, cells };
  },
});

const SUBJECTS = { noProxy, weir, weirPortable, barePipe, haproxy, v2ray, xray, singBox, mihomo };

const MEASUREMENTS: readonly Measurement[] = [
  ...(["down", "up"] as const).flatMap((way) => [1, 8, 64].map((streams) => throughput(streams, way))),
  connections(null),
  connections("socks"),
  connections("connect"),
  firstByte(null),
  firstByte("socks"),
  latency,
  idle(1_000, 10_000),
  idle(9_000, 60_000),
];

/**
 * One line a result. A ratio is the median over the rounds of weir against that subject in the same round. `only`: those
 * measurements whose title has it.
 */
export async function run(out: Out, only = ""): Promise<void> {
  const sink = await forkServer("./sink.ts");
  const load = forkPeer("./relay-peer.ts");
  try {
    out(`relay: ${cpus().length} × ${cpus()[0]?.model}, ${process.version}, rounds interleaved`);
    for (const measurement of MEASUREMENTS)
      if (measurement.title.includes(only)) await compare(measurement, load, sink.port, out);
  } finally {
    await endOf(load);
    await endOf(sink.child);
  }
}

async function compare(
  measurement: Measurement,
  load: ChildProcess,
  sinkPort: number,
  out: Out,
): Promise<void> {
  const { title, columns, rounds } = measurement;
  await using opened = new AsyncDisposableStack();
  const subjects: Subject[] = [];
  for (const [program, open] of Object.entries(SUBJECTS)) {
    const subject = await open(sinkPort); // fresh processes: what came before left no memory behind
    if (subject === null) {
      out(`SKIP relay: ${program} is not on the PATH`);
      continue;
    }
    opened.use(subject);
    if (measurement.by === undefined || subject.asked[measurement.by] !== undefined) subjects.push(subject);
  }
  const rows = new Map<Subject, Row[]>(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < (measurement.warm ?? 0); round++)
    for (const subject of subjects) await measurement.run(load, subject, sinkPort);
  for (let round = 0; round < rounds; round++)
    for (const subject of subjects) rows.get(subject)?.push(await measurement.run(load, subject, sinkPort));
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

if (import.meta.main) await run((line) => console.log(line), process.argv[2]);
