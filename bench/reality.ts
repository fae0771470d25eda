/**
 * What handshakes and short connections cost a REALITY server, in CPU time of that process: ours and, where the PATH holds it, Xray's, in
 * turn in the same rounds and under the same client. Client, site and sink are processes of their own and are not counted.
 */
import { type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { type Cell, CELLS } from "../test/support/interop/cells.ts";
import { weir } from "../test/support/interop/clash.ts";
import { xray } from "../test/support/interop/ray.ts";
import { clashRealityClient } from "../test/support/interop/reality.ts";
import type { Launch, Speaker } from "../test/support/interop/speaker.ts";
import { freePort, missing } from "../test/support/peer.ts";
import { median, type Program, startProgram } from "./protocols-chain.ts";
import type { RealityResult, RealityTask } from "./reality-peer.ts";
import { cpuSeconds, endOf, forkPeer, forkServer } from "./relay-subjects.ts";

export const NAME = "reality";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 5);
const AMOUNT = 500;
/** Both have compiled what is hot by then. */
const WARM_UP = 3_000;
const PARALLEL = 8;
/** `vless reality ML-KEM`: the site chooses X25519MLKEM768. */
const NAMES = ["vless reality", "vless reality ML-KEM", "vless reality ML-DSA"];

interface Subject {
  readonly name: string;
  readonly port: number;
  readonly program: Program;
  readonly costs: Cost[];
}

interface Cost {
  readonly rate: number;
  readonly cpuMs: number;
}

export async function run(out: (line: string) => void): Promise<void> {
  const absent = missing("xray");
  if (absent !== false) out(absent);
  const speakers: readonly Speaker[] = absent === false ? [weir("weir"), xray] : [weir("weir")];
  out(`${ROUNDS} interleaved rounds of ${AMOUNT} connections, ${PARALLEL} at a time`);
  for (const name of NAMES) {
    const cell = CELLS.find((one) => one.name === name);
    if (cell === undefined) continue;
    for (const isHandshakeAlone of [true, false]) await compare(cell, { speakers, isHandshakeAlone }, out);
  }
}

interface Comparison {
  readonly speakers: readonly Speaker[];
  readonly isHandshakeAlone: boolean;
}

async function compare(
  named: Cell,
  { speakers, isHandshakeAlone }: Comparison,
  out: (line: string) => void,
): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const reality = named.reality ?? { group: "X25519", mldsa65: false, dest: 0 };
  const site = await forkServer("./reality-peer.ts", ["site", reality.group]);
  opened.defer(() => endOf(site.child));
  const sink = await forkServer("./protocols-peer.ts", ["sink"]);
  opened.defer(() => endOf(sink.child));
  const load = forkPeer("./reality-peer.ts", ["load"]);
  opened.defer(() => endOf(load));
  const cell = { ...named, reality: { ...reality, dest: site.port } };
  const subjects: Subject[] = [];
  for (const speaker of speakers) {
    const port = await freePort();
    const program = opened.use(await startProgram(speaker.server(cell, port) as Launch, port));
    subjects.push({ name: speaker.program, port, program, costs: [] });
  }
  const keys = clashRealityClient(cell.reality);
  const spend = async ({ port, program }: Subject, amount: number) =>
    await measure(load, program.pid, {
      port,
      sinkPort: sink.port,
      keys,
      parallel: PARALLEL,
      amount,
      isHandshakeAlone,
    });
  for (const subject of subjects) await spend(subject, WARM_UP);
  for (let round = 0; round < ROUNDS; round++)
    for (const subject of subjects) subject.costs.push(await spend(subject, AMOUNT));
  const [first] = subjects;
  for (const { name, costs } of subjects) {
    const rates = costs.map(({ rate }) => rate);
    const ratios = costs.map(({ cpuMs }, round) => cpuMs / (first?.costs[round]?.cpuMs ?? Number.NaN));
    const cpuMs = median(costs.map((one) => one.cpuMs)).toFixed(2);
    const what = isHandshakeAlone ? "handshake" : "connection";
    out(
      `${cell.name}: ${name} ${cpuMs} ms of CPU a ${what} (× ${median(ratios).toFixed(2)} of ours), ${median(rates).toFixed(0)}/s`,
    );
  }
}

async function measure(load: ChildProcess, pid: number, task: RealityTask) {
  const before = cpuSeconds(pid);
  load.send(task);
  const [{ seconds }] = (await once(load, "message")) as [RealityResult];
  return { rate: task.amount / seconds, cpuMs: ((cpuSeconds(pid) - before) / task.amount) * 1000 };
}
