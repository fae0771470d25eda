/**
 * QUIC: what a GiB costs each side. Two processes of ours over loopback, then hysteria2: our client before our server and
 * before those of others, and theirs before their own, in turn. All share the machine: ratios say more than absolute figures.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { openPairs, type Side } from "./hysteria2-sides.ts";
import type { Kind, ProtocolResult, ProtocolTask } from "./protocols-peer.ts";
import type { QuicKind, QuicTask } from "./quic-peer.ts";
import { cpuSeconds, endOf, forkPeer, forkServer } from "./relay-subjects.ts";

export const NAME = "quic";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
const MOVE_MS = Number(process.env["BENCH_MS"] ?? 3_000);
const WARM_MS = MOVE_MS / 2;

const GIB = 2 ** 30;
const KINDS = ["D", "U"] as const;
/** The load warms itself up for so long. */
const UNCOUNTED_SECONDS = 0.3;
const WAYS = { D: "down", U: "up" } as const;

interface Measured {
  readonly gbit: number;
  /** CPU seconds a GiB, of the dialling side and of the accepting one. */
  readonly client: number;
  readonly server: number;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Without the warm-up: CPU time is read when it is over. */
async function bare(kind: QuicKind): Promise<Measured> {
  const server = forkPeer("./quic-peer.ts", ["server"]);
  const client = forkPeer("./quic-peer.ts", ["client"]);
  try {
    const [{ port, fingerprint }] = (await once(server, "message")) as [QuicTask];
    client.send({ port, fingerprint, kind, warmMs: WARM_MS, ms: MOVE_MS } satisfies QuicTask);
    await once(client, "message");
    const before = [cpuSeconds(client.pid ?? null), cpuSeconds(server.pid ?? null)] as const;
    const [{ amount, seconds }] = (await once(client, "message")) as [ProtocolResult];
    return {
      gbit: (amount * 8) / seconds / 1e9,
      client: ((cpuSeconds(client.pid ?? null) - before[0]) * GIB) / amount,
      server: ((cpuSeconds(server.pid ?? null) - before[1]) * GIB) / amount,
    };
  } finally {
    await endOf(client);
    await endOf(server);
  }
}

async function relayed(
  load: ChildProcess,
  { kind, sinkPort }: { readonly kind: Kind; readonly sinkPort: number },
  client: Side,
  server: Side,
): Promise<Measured> {
  const task = { what: "bulk", kind, streams: 1, socksPort: client.port, sinkPort } as const;
  const moveFor = async (ms: number): Promise<ProtocolResult> => {
    load.send({ ...task, ms } satisfies ProtocolTask);
    const [result] = (await once(load, "message")) as [ProtocolResult];
    return result;
  };
  await moveFor(WARM_MS);
  const before = [cpuSeconds(client.pid), cpuSeconds(server.pid)] as const;
  const { amount, seconds } = await moveFor(MOVE_MS);
  // The load does not count its first bytes; the CPU time of the programs holds what they cost.
  const moved = (amount * (seconds + UNCOUNTED_SECONDS)) / seconds;
  return {
    gbit: (amount * 8) / seconds / 1e9,
    client: ((cpuSeconds(client.pid) - before[0]) * GIB) / moved,
    server: ((cpuSeconds(server.pid) - before[1]) * GIB) / moved,
  };
}

function show(out: (line: string) => void, title: string, all: readonly Measured[]): void {
  const middle = (of: (one: Measured) => number): string => median(all.map(of)).toFixed(2);
  const load = (loadavg()[0] ?? 0).toFixed(1);
  out(
    `| ${title} | ${middle((one) => one.gbit)} | ${middle((one) => one.client)} | ${middle((one) => one.server)} | ${load} |`,
  );
}

export async function run(
  out: (line: string) => void,
  only = process.env["BENCH_ONLY"] ?? "",
): Promise<void> {
  out("| | Gbit/s | client, CPU s/GiB | server, CPU s/GiB | load |\n|---|---|---|---|---|");
  for (const kind of KINDS) {
    const title = `transport alone, ${WAYS[kind]}`;
    if (!title.includes(only)) continue;
    const all: Measured[] = [];
    for (let round = 0; round < ROUNDS; round++) all.push(await bare(kind));
    show(out, title, all);
  }
  if (!"hysteria2".includes(only)) return;
  await hysteria2(out);
}

async function hysteria2(out: (line: string) => void): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const sink = await forkServer("./protocols-peer.ts", ["sink"]);
  undo.defer(() => endOf(sink.child));
  const load = forkPeer("./protocols-peer.ts", ["load"]);
  undo.defer(() => endOf(load));
  const pairs = await openPairs(undo, out);
  for (const kind of KINDS) {
    const all = pairs.map((): Measured[] => []);
    for (let round = 0; round < ROUNDS; round++)
      for (const [index, { client, server }] of pairs.entries())
        all[index]?.push(await relayed(load, { kind, sinkPort: sink.port }, client, server));
    for (const [index, { title }] of pairs.entries())
      show(out, `hysteria2, ${title}, ${WAYS[kind]}`, all[index] ?? []);
  }
}
