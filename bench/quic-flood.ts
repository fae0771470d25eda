/**
 * What a flood of first packets does to who is connected: round trips of twenty clients of a QUIC server, in turn quiet and
 * beside 100,000 Initials a second, each from another address. Needs root: such addresses are written by a raw socket.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import type { FloodSend, FloodTask, RoundTrips } from "./quic-flood-peer.ts";
import { cpuSeconds, endOf, forkPeer } from "./relay-subjects.ts";

export const NAME = "quic-flood";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
const MOVE_MS = Number(process.env["BENCH_MS"] ?? 4_000);
const RATE = Number(process.env["BENCH_RATE"] ?? 100_000);
/** The flood begins before the first round trip, and ends behind the last one. */
const EDGE_MS = 500;

async function measure(client: ChildProcess): Promise<RoundTrips> {
  client.send(MOVE_MS);
  const [trips] = (await once(client, "message")) as [RoundTrips];
  return trips;
}

const shown = ({ p50, p99, count, unanswered }: RoundTrips): string =>
  `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)} of ${count}, ${unanswered} unanswered`;

export async function run(out: (line: string) => void): Promise<void> {
  if (process.getuid?.() !== 0) return out("SKIP: needs root");
  const server = forkPeer("./quic-flood-peer.ts", ["server"]);
  const client = forkPeer("./quic-flood-peer.ts", ["client"]);
  const flooder = forkPeer("./quic-flood-peer.ts", ["flood"]);
  try {
    const [task] = (await once(server, "message")) as [FloodTask];
    client.send(task);
    await once(client, "message");
    await measure(client); // warm
    for (let round = 0; round < ROUNDS; round++) {
      const quiet = await measure(client);
      flooder.send({ ...task, rate: RATE, ms: MOVE_MS + 2 * EDGE_MS } satisfies FloodSend);
      const end = once(flooder, "message");
      await new Promise((resolve) => setTimeout(resolve, EDGE_MS));
      const before = cpuSeconds(server.pid ?? null);
      const flooded = await measure(client);
      const core = ((cpuSeconds(server.pid ?? null) - before) * 1000) / MOVE_MS;
      const [rate] = (await end) as [number];
      out(
        `ms: quiet ${shown(quiet)}; beside ${Math.round(rate)} Initials a second ${shown(flooded)}; ` +
          `p99 × ${(flooded.p99 / quiet.p99).toFixed(1)}, server ${core.toFixed(2)} of a core, load ${(loadavg()[0] ?? 0).toFixed(1)}`,
      );
    }
  } finally {
    for (const child of [flooder, client, server]) await endOf(child);
  }
}
