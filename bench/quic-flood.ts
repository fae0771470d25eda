/**
 * What a flood of first packets does to who is connected: round trips of twenty clients of a QUIC server, in turn quiet and
 * beside 100,000 Initials a second, each from another address, first to a socket that is not the server's. Needs root: such addresses are written by a raw socket.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
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

/** The flood is there before, and still behind it. Clients whose packets it has cost have time to say them again. */
async function beside<Found>(
  flooder: ChildProcess,
  task: Pick<FloodSend, "port" | "fingerprint" | "isElsewhere">,
  find: () => Promise<Found>,
): Promise<{ readonly found: Found; readonly rate: number }> {
  const end = once(flooder, "message");
  flooder.send({ ...task, rate: RATE, ms: MOVE_MS + 2 * EDGE_MS } satisfies FloodSend);
  await delay(EDGE_MS);
  const found = await find();
  const [rate] = (await end) as [number];
  await delay(EDGE_MS);
  return { found, rate };
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
      const elsewhere = await beside(flooder, { ...task, isElsewhere: true }, () => measure(client));
      const here = await beside(flooder, { ...task, isElsewhere: false }, async () => {
        const before = cpuSeconds(server.pid ?? null);
        const trips = await measure(client);
        return { trips, core: ((cpuSeconds(server.pid ?? null) - before) * 1000) / MOVE_MS };
      });
      out(
        `ms: quiet ${shown(quiet)}; the flood elsewhere ${shown(elsewhere.found)}; here ${shown(here.found.trips)}: ` +
          `p99 × ${(here.found.trips.p99 / quiet.p99).toFixed(1)} and × ${(here.found.trips.p99 / elsewhere.found.p99).toFixed(1)}, ` +
          `${Math.round(here.rate)} a second, server ${here.found.core.toFixed(2)} of a core, load ${(loadavg()[0] ?? 0).toFixed(1)}`,
      );
    }
  } finally {
    for (const child of [flooder, client, server]) await endOf(child);
  }
}
