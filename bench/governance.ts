/**
 * How well limits are kept in the real program: rate over ten seconds, shares of the flows, and what a quota overshoots.
 * Client and origin share the cores with the core that is measured.
 */
import type { Socket } from "node:net";
import { startGoverned, statusOf, type GovernedCore } from "../test/support/governed-core.ts";

export const NAME = "governance";

const SECONDS = 10;
/** The burst and full buffers are over by then. */
const SETTLE_MS = 1000;

export async function run(out: (line: string) => void): Promise<void> {
  for (const mbit of [1, 10, 100])
    for (const flows of [1, 16]) {
      for (const direction of ["upload", "download"] as const) out(await rate(mbit, flows, direction));
    }
  out(await overshoot());
}

async function rate(mbit: number, flows: number, direction: "upload" | "download"): Promise<string> {
  await using governed = await startGoverned(
    `  enabled: true\n  global: { ${direction}-bps: ${mbit * 1e6} }`,
  );
  const moved = await Promise.all(Array.from({ length: flows }, () => openFlow(governed, direction)));
  await pause(SETTLE_MS);
  const before = await counted(governed, direction);
  const each = moved.map(({ bytes }) => bytes());
  const startedMs = performance.now();
  await pause(SECONDS * 1000);
  const after = await counted(governed, direction);
  const tookMs = performance.now() - startedMs;
  const shares = moved.map(({ bytes }, at) => bytes() - (each[at] as number));
  for (const { socket } of moved) socket.destroy();
  const wanted = (mbit * 1e6 * tookMs) / 8000;
  const off = ((after - before) / wanted - 1) * 100;
  const text = `${mbit} Mbit/s, ${flows} flows, ${direction}: ${off.toFixed(2)} % off`;
  return direction === "upload" ? text : `${text}, Jain ${jain(shares).toFixed(3)}`;
}

interface Flow {
  readonly socket: Socket;
  /** Arrived at the client. */
  bytes(): number;
}

async function openFlow(governed: GovernedCore, direction: "upload" | "download"): Promise<Flow> {
  const socket = await governed.open(direction === "download" ? Number.MAX_SAFE_INTEGER : 0);
  let arrived = 0;
  socket.on("error", () => {}); // the end of the measurement
  socket.on("data", (chunk: Buffer) => (arrived += chunk.length));
  if (direction === "upload") keepWriting(socket);
  return { socket, bytes: () => arrived };
}

function keepWriting(socket: Socket): void {
  const block = Buffer.alloc(64 * 1024, 1);
  const write = (): void => {
    while (!socket.destroyed && socket.write(block));
  };
  socket.on("drain", write);
  write();
}

async function counted(governed: GovernedCore, direction: "upload" | "download"): Promise<number> {
  return (await statusOf(governed, "global")).counters[`${direction}_bytes`];
}

async function overshoot(): Promise<string> {
  const cap = 50_000_000;
  await using governed = await startGoverned(
    `  enabled: true\n  global: { quota: { total-bytes: ${cap}, window: 1h, overage-download-bps: 8000, overage-upload-bps: 8000 } }`,
  );
  const flows = await Promise.all(Array.from({ length: 16 }, () => openFlow(governed, "download")));
  await pause(3000);
  const status = await statusOf(governed, "global");
  for (const { socket } of flows) socket.destroy();
  const used = status.counters.download_bytes + status.counters.upload_bytes;
  return `a quota of ${cap} bytes, 16 flows: ${used - cap} bytes more after 3 s (overage rate 1,000 bytes/s)`;
}

function jain(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  return sum ** 2 / (shares.length * shares.reduce((a, b) => a + b * b, 0));
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
