/** How many bytes of streams arrive a second, over a network whose rate, delay and losses are given. */
import assert from "node:assert/strict";
import type { Congestion } from "#transport/quic/congestion/congestion.ts";
import { type LinkOptions, type NetworkPeer, QuicNetwork } from "./quic-network.ts";

const BLOCK = Buffer.alloc(64 * 1024);
const FAR_IDLE_MS = 600_000;

export interface GoodputOptions {
  /** Of the way up; the way down has the same delay, and neither rate nor loss. */
  readonly up: LinkOptions;
  /** One flow each, which all share the way. */
  readonly flows: readonly (() => Congestion)[];
  /** What comes in before is not counted, and how long it is counted then. */
  readonly fromMs: number;
  readonly ms: number;
  readonly seed?: number;
}

/** Bytes a millisecond of each flow. */
export async function measureGoodput(options: GoodputOptions): Promise<readonly number[]> {
  const { up, flows, fromMs, ms, seed = 1 } = options;
  const [first, ...others] = flows.map((make) => ({
    client: { congestion: make(), numbers: { idleTimeoutMs: FAR_IDLE_MS } },
  }));
  assert.ok(first !== undefined);
  const network = await QuicNetwork.open({ seed, up, down: { delayMs: up.delayMs }, ...first });
  const got = flows.map(() => 0);
  const watch = ({ client, server }: { client: NetworkPeer; server: NetworkPeer }, index: number): void => {
    client.onConnected = () => sendForever(client);
    server.onStream = (stream) => {
      stream.on("error", () => {});
      stream.on("data", (bytes: Buffer) => (got[index] = (got[index] ?? 0) + bytes.length));
    };
  };
  watch(network, 0);
  for (const [index, other] of others.entries()) watch(await network.join(other), index + 1);
  await network.run(() => network.nowMs >= fromMs);
  const [before, startMs] = [[...got], network.nowMs];
  await network.run(() => network.nowMs >= fromMs + ms);
  return got.map((bytes, index) => (bytes - (before[index] ?? 0)) / (network.nowMs - startMs));
}

function sendForever({ made }: NetworkPeer): void {
  const stream = made.open(true);
  assert.ok(stream !== null);
  stream.on("error", () => {});
  const more = (): void => {
    while (!stream.destroyed && stream.write(BLOCK));
  };
  stream.on("drain", more);
  more();
}

/** Jain's index: 1 where all have the same, 1 divided by their number where one has all. */
export function fairness(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return (sum * sum) / (shares.length * squares);
}
