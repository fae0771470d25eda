/**
 * Datagrams of 1,200 bytes through a SOCKS5 association, both ways, beside a bare relay by node:dgram, v2ray and no proxy
 * in the same interleaved run; then what is lost at half of the wanted rate. The ends send and receive datagram by datagram
 * (WEIR_BENCH_RUNS=1: in runs, as QUIC programs do). WEIR_BENCH_SECONDS: how long the loss is counted, 30 for the record.
 */
import { once } from "node:events";
import { cpuSeconds, endOf, forkPeer, noProxy, v2ray, weir, type Subject } from "./relay-subjects.ts";
import type { UdpResult, UdpTask } from "./udp-peer.ts";

export const NAME = "udp";

const ROUNDS = 3;
const MS = 2_000;
const BYTES = 1_200;
const HALF_RATE = 75_000;
const LOSS_MS = Number(process.env["WEIR_BENCH_SECONDS"] ?? 5) * 1_000;
const ENDS = process.env["WEIR_BENCH_RUNS"] === "1" ? "runs" : "plain";

interface Figure {
  readonly rate: number;
  readonly cpuMicros: number;
  readonly lost: number;
  readonly sent: number;
}

async function bareRelay(): Promise<Subject> {
  const { child, port } = await forkPeer("./udp-bare.ts", []);
  const pid = child.pid as number;
  return {
    name: "bare node:dgram",
    port: 0,
    socksPort: port,
    pid,
    [Symbol.asyncDispose]: () => endOf(child),
  };
}

export async function run(out: (line: string) => void): Promise<void> {
  const far = await forkPeer("./udp-peer.ts", ["far", ENDS]);
  const { child: load } = await forkPeer("./udp-peer.ts", ["load", ENDS]);
  await using opened = new AsyncDisposableStack();
  opened.defer(() => endOf(far.child));
  opened.defer(() => endOf(load));

  async function measure({ socksPort, pid }: Subject, task: Omit<UdpTask, "socksPort" | "farPort">) {
    const before = cpuSeconds(pid);
    const teller = task.direction === "up" ? load : far.child;
    const told = once(teller, "message");
    load.send({ ...task, socksPort, farPort: far.port } satisfies UdpTask);
    const [{ sent, received, rate }] = (await told) as [UdpResult];
    if (task.direction === "down") load.send("over");
    const cpuMicros = ((cpuSeconds(pid) - before) * 1e6) / received;
    return { rate, cpuMicros, lost: sent - received, sent };
  }

  const rows: Subject[] = [];
  for (const open of [noProxy, weir, bareRelay, v2ray]) {
    const subject = await open(far.port);
    if (subject === null) out("SKIP udp v2ray: it is not on the PATH (Debian package v2ray)");
    else rows.push(opened.use(subject));
  }
  const figures = new Map<string, Figure[]>();
  for (let round = 0; round < ROUNDS; round++)
    for (const direction of ["up", "down"] as const)
      for (const subject of rows) {
        const key = `${direction}: ${subject.name}`;
        const figure = await measure(subject, { direction, bytes: BYTES, ms: MS, perSecond: null });
        figures.set(key, [...(figures.get(key) ?? []), figure]);
      }
  for (const [key, of] of figures) {
    const { rate, cpuMicros } = of.sort((a, b) => a.rate - b.rate)[of.length >> 1] as Figure;
    const cost = cpuMicros === 0 ? "" : `, CPU µs each ${cpuMicros.toFixed(2)}`;
    out(`${BYTES} bytes by SOCKS5, ${key}: per second ${rate.toFixed(0)}${cost}`);
  }
  for (const direction of ["up", "down"] as const)
    for (const subject of rows) {
      const task = { direction, bytes: BYTES, ms: LOSS_MS, perSecond: HALF_RATE };
      const { lost, sent, cpuMicros } = await measure(subject, task);
      const cost = cpuMicros === 0 ? "" : `, CPU µs each ${cpuMicros.toFixed(2)}`;
      out(
        `${HALF_RATE} a second for ${LOSS_MS / 1_000} s, ${direction}: ${subject.name}: lost ${lost} of ${sent}${cost}`,
      );
    }
}

if (import.meta.main) await run((line) => console.log(line));
