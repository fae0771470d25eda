/** The end of a relay measurement that asks, in a process of its own; `sink.ts` answers. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { makeShortConnections } from "./short-connections.ts";
import type { SubjectAddress } from "./subject-address.ts";

export type Task = { readonly door: SubjectAddress } & (
  | {
      readonly kind: "throughput";
      readonly way: "down" | "up";
      readonly streams: number;
      readonly ms: number;
    }
  | {
      readonly kind: "connections";
      readonly parallel: number;
      readonly ms: number;
      /** What the subject is asked for; absent: the loopback. */
      readonly host?: string;
    }
  | { readonly kind: "latency"; readonly perSecond: number; readonly ms: number }
  | { readonly kind: "first byte"; readonly perSecond: number; readonly ms: number }
  | { readonly kind: "hold"; readonly count: number }
  | { readonly kind: "release" }
);
type Of<Kind extends Task["kind"]> = Extract<Task, { kind: Kind }>;

/** Amounts of work done, and the time it took; for latencies every sample in µs, sorted. */
export interface TaskResult {
  readonly amount: number;
  readonly seconds: number;
  readonly samples?: readonly number[];
}

const HOST = "127.0.0.1";
const BLOCK = Buffer.alloc(256 * 1024, "weir");

function sendForEver(socket: Socket): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(BLOCK));
  };
  socket.on("drain", more);
  more();
}

/** Answers once the other end has acknowledged, where a greeting is needed; `on` gets all that comes behind it. */
async function open({ host = HOST, port, to }: SubjectAddress, on: (bytes: number) => void): Promise<Socket> {
  let greeted: ((bytes: number) => void) | null = null;
  // One static buffer: the load generator must cost less than what it measures.
  const onread = { buffer: shared, callback: (bytes: number) => ((greeted ?? on)(bytes), true) };
  const socket = connect({ port, host, noDelay: true, allowHalfOpen: true, onread });
  await once(socket, "connect");
  socket.on("error", () => {}); // a reset at the end of a measurement
  if (to === null) return socket;
  const exchange = async (request: string | Uint8Array, answerBytes: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let missing = answerBytes;
    greeted = (bytes) => {
      missing -= bytes;
      if (missing <= 0) resolve();
    };
    socket.write(request);
    await promise;
  };
  if (to.by === "socks") {
    await exchange(Uint8Array.of(5, 1, 0), 2);
    await exchange(Uint8Array.of(5, 1, 0, 1, 127, 0, 0, 1, to.port >> 8, to.port & 255), 10);
  } else await exchange(`CONNECT ${HOST}:${to.port} HTTP/1.1\r\nHost: ${HOST}:${to.port}\r\n\r\n`, 1);
  greeted = null;
  return socket;
}
const shared = Buffer.allocUnsafe(256 * 1024);

async function throughput({ door, way, streams, ms }: Of<"throughput">): Promise<TaskResult> {
  let received = 0;
  const sockets = await Promise.all(
    Array.from({ length: streams }, () => open(door, (bytes) => (received += bytes))),
  );
  for (const socket of sockets) {
    socket.write(way === "down" ? "D" : "U");
    if (way === "up") sendForEver(socket);
  }
  const moved = (): number =>
    way === "down"
      ? received
      : sockets.reduce((sum, socket) => sum + socket.bytesWritten - socket.writableLength, 0);
  await delay(300); // windows open, buffers fill
  const [startBytes, startMs] = [moved(), performance.now()];
  await delay(ms);
  const result = { amount: moved() - startBytes, seconds: (performance.now() - startMs) / 1_000 };
  for (const socket of sockets) socket.resetAndDestroy();
  return result;
}

/** One request after the other, at most so many a second: a machine that is not busy. */
async function latency({ door, perSecond, ms }: Of<"latency">): Promise<TaskResult> {
  const samples: number[] = [];
  const message = Buffer.alloc(512, "E");
  let sentAtMs = 0;
  let missing = 0;
  const socket = await open(door, (bytes) => {
    missing -= bytes;
    if (missing <= 0) samples.push((performance.now() - sentAtMs) * 1_000);
  });
  const startMs = performance.now();
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setInterval(() => {
    if (performance.now() - startMs > ms) resolve();
    if (missing > 0) return;
    missing = message.length;
    sentAtMs = performance.now();
    socket.write(message);
  }, 1_000 / perSecond);
  await promise;
  clearInterval(timer);
  socket.destroy();
  const settled = samples.slice(samples.length / 10).sort((a, b) => a - b);
  return { amount: samples.length, seconds: (performance.now() - startMs) / 1_000, samples: settled };
}

const TICK_MS = 5;

/** New connections by the clock, whether or not earlier ones were answered: from the connect to the byte that comes back. */
async function firstByte({ door, perSecond, ms }: Of<"first byte">): Promise<TaskResult> {
  const samples: number[] = [];
  const asking: Promise<void>[] = [];
  const ask = async (): Promise<void> => {
    const startMs = performance.now();
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = await open(door, () => resolve());
    socket.write("E");
    await promise;
    samples.push((performance.now() - startMs) * 1_000);
    socket.end();
  };
  const startMs = performance.now();
  for (let nowMs = 0; nowMs < ms; nowMs = performance.now() - startMs) {
    while (asking.length < (nowMs * perSecond) / 1_000) asking.push(ask());
    await delay(TICK_MS);
  }
  await Promise.all(asking);
  const settled = samples.slice(samples.length / 10).sort((a, b) => a - b);
  return { amount: samples.length, seconds: (performance.now() - startMs) / 1_000, samples: settled };
}

const held: Socket[] = [];

async function hold({ door, count }: Of<"hold">): Promise<TaskResult> {
  const startMs = performance.now();
  while (held.length < count) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = await open(door, () => resolve());
    socket.write("E");
    await promise; // relayed all the way
    held.push(socket);
  }
  return { amount: count, seconds: (performance.now() - startMs) / 1_000 };
}

function releaseHeld(): TaskResult {
  const amount = held.length;
  for (const socket of held.splice(0)) socket.resetAndDestroy();
  return { amount, seconds: 0 };
}

function perform(task: Task): Promise<TaskResult> {
  if (task.kind === "throughput") return throughput(task);
  if (task.kind === "connections")
    return Promise.resolve(makeShortConnections(task.door, task.host ?? HOST, task));
  if (task.kind === "latency") return latency(task);
  if (task.kind === "first byte") return firstByte(task);
  return task.kind === "hold" ? hold(task) : Promise.resolve(releaseHeld());
}

process.on("message", (task: Task) => {
  void perform(task).then((result) => process.send?.(result));
});
process.on("disconnect", () => process.exit(0));
