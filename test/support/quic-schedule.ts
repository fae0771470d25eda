/** One transfer over a network whose delays, losses, doubles, damage and rates are drawn by a seed, checked by its hash. */
import { Bbr } from "#transport/quic/congestion/bbr.ts";
import { Brutal } from "#transport/quic/congestion/brutal.ts";
import type { Congestion } from "#transport/quic/congestion/congestion.ts";
import { Cubic } from "#transport/quic/congestion/cubic.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import { echoAll } from "./quic-echo.ts";
import { type LinkOptions, QuicNetwork, seededRandom } from "./quic-network.ts";

const CONTROLS: readonly (() => Congestion)[] = [
  () => new Cubic(),
  () => new NewReno(),
  () => new Bbr(),
  () => new Brutal(1e6),
];
const LONG_IDLE_MS = 600_000;
const MOST_STREAM_BYTES = 12_000;

/** Throws an error that names the seed where the transfer stands still or what came back differs. */
export async function runSchedule(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const link = (): LinkOptions => ({
    delayMs: random() * 60,
    jitterMs: random() < 0.5 ? 0 : random() * 40,
    loss: random() < 0.3 ? 0 : random() * 0.25,
    doubled: random() < 0.5 ? 0 : random() * 0.3,
    damaged: random() < 0.7 ? 0 : random() * 0.1,
    ...(random() < 0.3 ? { rate: 50 + random() * 1000, queueBytes: 5000 + random() * 60_000 } : {}),
  });
  const side = () => ({
    congestion: CONTROLS[Math.floor(random() * CONTROLS.length)]?.() ?? new Cubic(),
    numbers: { idleTimeoutMs: LONG_IDLE_MS },
  });
  const network = await QuicNetwork.open({
    seed,
    up: link(),
    down: link(),
    client: side(),
    server: side(),
  });
  const count = 1 + Math.floor(random() * 3);
  const sizes = Array.from({ length: count }, () => Math.floor(random() * MOST_STREAM_BYTES));
  try {
    await echoAll(network, sizes);
  } catch (error) {
    throw new Error(`schedule ${seed}`, { cause: error });
  }
}
