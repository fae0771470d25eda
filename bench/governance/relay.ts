/**
 * Throughput with traffic control off, with policies of every kind that only count, and with limits and a quota on each
 * of them that are never reached: in one interleaved run, for each way the relay has.
 */
import { once } from "node:events";
import type { ChildProcess } from "node:child_process";
import { startCore, type Core } from "../../test/support/start-core.ts";
import type { Task, TaskResult } from "../relay-peer.ts";
import { cpuSeconds, endOf, forkPeer, forkServer } from "../relay-subjects.ts";

const WIDE =
  ", upload-bps: 100000000000, download-bps: 100000000000, quota: { total-bytes: 900000000000000, window: 30d }";

const policies = (limits: string) => `traffic-control:
  enabled: true
  global: { id: all${limits} }
  devices: [{ id: near, source-cidrs: [127.0.0.0/8]${limits} }]
  rules: [{ id: rest, type: MATCH, target: Proxy${limits} }]
  targets:
    - { id: node, kind: proxy, target: DIRECT${limits} }
    - { id: group, kind: group, target: Proxy${limits} }
`;

const KINDS = { off: "", counting: policies(""), "limits and quotas": policies(WIDE) } as const;

interface Subject {
  readonly name: string;
  readonly core: Core;
  readonly port: number;
  readonly bits: number[];
  readonly cpuPerGiB: number[];
}

async function start(name: keyof typeof KINDS, relay: string, sinkPort: number): Promise<Subject> {
  const core = await startCore(`relay: ${relay}
listeners:
  - { name: bench, type: tunnel, listen: 127.0.0.1, port: 0, network: [tcp], target: "127.0.0.1:${sinkPort}" }
proxy-groups: [{ name: Proxy, type: select, proxies: [DIRECT] }]
rules: ["MATCH,Proxy"]
${KINDS[name]}`);
  return { name, core, port: await core.port("bench"), bits: [], cpuPerGiB: [] };
}

async function measure(load: ChildProcess, subject: Subject, streams: number, ms: number): Promise<void> {
  const before = cpuSeconds(subject.core.pid);
  const task: Task = {
    kind: "throughput",
    door: { port: subject.port, to: null },
    way: "down",
    streams,
    ms,
  };
  load.send(task);
  const [{ amount, seconds }] = (await once(load, "message")) as [TaskResult];
  subject.bits.push((amount * 8) / seconds);
  subject.cpuPerGiB.push((cpuSeconds(subject.core.pid) - before) / (amount / 2 ** 30));
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** `budget`: rounds. */
export async function run(out: (line: string) => void, budget: number): Promise<void> {
  const sink = await forkServer("./sink.ts");
  const load = forkPeer("./relay-peer.ts");
  try {
    for (const relay of ["auto", "portable"])
      for (const streams of [1, 8]) {
        await using opened = new AsyncDisposableStack();
        const subjects: Subject[] = [];
        for (const name of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
          const subject = await start(name, relay, sink.port);
          opened.use(subject.core);
          subjects.push(subject);
        }
        for (let round = 0; round < budget; round++)
          for (const subject of subjects) await measure(load, subject, streams, 1500);
        const off = subjects[0] as Subject;
        for (const { name, bits, cpuPerGiB } of subjects) {
          const ratio = median(bits.map((value, at) => value / (off.bits[at] as number)));
          const cpu = median(cpuPerGiB.map((value, at) => value / (off.cpuPerGiB[at] as number)));
          out(
            `relay ${relay}, ${streams} streams, ${name}: ${(median(bits) / 1e9).toFixed(2)} Gbit/s, ` +
              `${median(cpuPerGiB).toFixed(3)} CPU s/GiB; ${ratio.toFixed(2)} × the throughput of off, ${cpu.toFixed(2)} × its CPU time`,
          );
        }
      }
  } finally {
    await endOf(load);
    await endOf(sink.child);
  }
}

if (import.meta.main) await run((line) => console.log(line), Number(process.argv[2] ?? 5));
