/**
 * The two ends of a relay measurement, each in a process of its own: `sink` answers, `load` asks. The first byte of a
 * connection says what it is for: D the sink sends without end, E it echoes, I it keeps quiet.
 */
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

export type Task =
  | { readonly kind: "throughput"; readonly port: number; readonly streams: number; readonly ms: number }
  | { readonly kind: "connections"; readonly port: number; readonly parallel: number; readonly ms: number }
  | { readonly kind: "latency"; readonly port: number; readonly rounds: number }
  | { readonly kind: "hold"; readonly port: number; readonly count: number }
  | { readonly kind: "release" };

/** Amounts of work done, and the time it took; for latency every round in µs, sorted. */
export interface TaskResult {
  readonly amount: number;
  readonly seconds: number;
  readonly samples?: readonly number[];
}

const HOST = "127.0.0.1";
const BLOCK = Buffer.alloc(256 * 1024, "weir");

function serveSink(socket: Socket): void {
  socket.on("error", () => {}); // the load generator may leave in the middle
  socket.once("data", (first: Buffer) => {
    const kind = String.fromCharCode(first[0] as number);
    if (kind === "D") {
      const more = (): void => {
        while (!socket.destroyed && socket.write(BLOCK));
      };
      socket.on("drain", more);
      more();
    } else if (kind === "E") {
      socket.write(first);
      socket.on("data", (chunk: Buffer) => socket.write(chunk));
      socket.on("end", () => socket.end());
    } else socket.write(first);
  });
}

function open(port: number, on: (bytes: number) => void): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // One static buffer: the load generator must cost less than what it measures.
    const onread = { buffer: shared, callback: (bytes: number) => (on(bytes), true) };
    const socket = connect({ port, host: HOST, noDelay: true, allowHalfOpen: true, onread });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      socket.on("error", () => {}); // a reset at the end of a measurement
      resolve(socket);
    });
  });
}
const shared = Buffer.allocUnsafe(256 * 1024);

async function throughput(port: number, streams: number, ms: number): Promise<TaskResult> {
  let bytes = 0;
  const sockets = await Promise.all(Array.from({ length: streams }, () => open(port, (n) => (bytes += n))));
  for (const socket of sockets) socket.write("D");
  await delay(200); // windows open
  const [startBytes, startMs] = [bytes, performance.now()];
  await delay(ms);
  const result = { amount: bytes - startBytes, seconds: (performance.now() - startMs) / 1_000 };
  for (const socket of sockets) socket.resetAndDestroy();
  return result;
}

async function connections(port: number, parallel: number, ms: number): Promise<TaskResult> {
  let amount = 0;
  const startMs = performance.now();
  const one = async (): Promise<void> => {
    while (performance.now() - startMs < ms) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const socket = await open(port, () => resolve());
      socket.write("E");
      await promise;
      socket.end();
      await once(socket, "close");
      amount++;
    }
  };
  await Promise.all(Array.from({ length: parallel }, one));
  return { amount, seconds: (performance.now() - startMs) / 1_000 };
}

async function latency(port: number, rounds: number): Promise<TaskResult> {
  const samples: number[] = [];
  const message = Buffer.alloc(512, "E");
  const { promise, resolve } = Promise.withResolvers<void>();
  let sentAtMs = 0;
  const socket = await open(port, () => {
    const nowMs = performance.now();
    samples.push((nowMs - sentAtMs) * 1_000);
    if (samples.length >= rounds) return resolve();
    sentAtMs = nowMs;
    socket.write(message);
  });
  sentAtMs = performance.now();
  const startMs = sentAtMs;
  socket.write(message);
  await promise;
  socket.destroy();
  const seconds = (performance.now() - startMs) / 1_000;
  return { amount: rounds, seconds, samples: samples.slice(rounds / 10).sort((a, b) => a - b) };
}

const held: Socket[] = [];

async function hold(port: number, count: number): Promise<TaskResult> {
  const startMs = performance.now();
  while (held.length < count) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = await open(port, () => resolve());
    socket.write("I");
    await promise; // relayed all the way
    held.push(socket);
  }
  return { amount: count, seconds: (performance.now() - startMs) / 1_000 };
}

function release(): TaskResult {
  const amount = held.length;
  for (const socket of held.splice(0)) socket.resetAndDestroy();
  return { amount, seconds: 0 };
}

function perform(task: Task): Promise<TaskResult> {
  if (task.kind === "throughput") return throughput(task.port, task.streams, task.ms);
  if (task.kind === "connections") return connections(task.port, task.parallel, task.ms);
  if (task.kind === "latency") return latency(task.port, task.rounds);
  return task.kind === "hold" ? hold(task.port, task.count) : Promise.resolve(release());
}

const [, , role] = process.argv;
if (role === "sink") {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, serveSink);
  server.listen({ port: 0, host: HOST, backlog: 4096 }, () => {
    process.send?.((server.address() as AddressInfo).port);
  });
} else if (role === "load") {
  process.on("message", (task: Task) => {
    void perform(task).then((result) => process.send?.(result));
  });
}
process.on("disconnect", () => process.exit(0));
