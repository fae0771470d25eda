/**
 * The two ends of a relay measurement, each in a process of its own: `sink` answers, `load` asks. The first byte of a
 * connection says what it is for: D the sink sends without end, U it takes without end, E it echoes, I it keeps quiet.
 */
import { once } from "node:events";
import { connect, createServer, Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { descriptorOf } from "#core/handover.ts";
import { openRelayCalls } from "#platform/linux/relay-calls.ts";

export type Handshake = "socks" | "connect";

/** Where a subject listens. `to`: how it is asked for a port of the loopback; null: it leads to one by itself. */
export interface Door {
  /** Absent: the loopback's. */
  readonly host?: string;
  readonly port: number;
  readonly to: { readonly by: Handshake; readonly port: number } | null;
}

export type Task = { readonly door: Door } & (
  | {
      readonly kind: "throughput";
      readonly way: "down" | "up";
      readonly streams: number;
      readonly ms: number;
    }
  | { readonly kind: "connections"; readonly parallel: number; readonly ms: number }
  | { readonly kind: "latency"; readonly perSecond: number; readonly ms: number }
  | { readonly kind: "hold"; readonly count: number }
  | { readonly kind: "release" }
);
type Of<Kind extends Task["kind"]> = Extract<Task, { kind: Kind }>;

/** Amounts of work done, and the time it took; for latency every round in µs, sorted. */
export interface TaskResult {
  readonly amount: number;
  readonly seconds: number;
  readonly samples?: readonly number[];
}

const HOST = "127.0.0.1";
/** A connection that is lost holds nobody up for longer. */
const PATIENCE_MS = 5_000;
const BLOCK = Buffer.alloc(256 * 1024, "weir");

function sendForEver(socket: Socket): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(BLOCK));
  };
  socket.on("drain", more);
  more();
}

function serveSink(socket: Socket): void {
  socket.on("error", () => {}); // the load generator may leave in the middle
  socket.once("data", (first: Buffer) => {
    const kind = String.fromCharCode(first[0] as number);
    if (kind === "D") sendForEver(socket);
    else if (kind === "U") socket.write(first, () => swallow(socket));
    else if (kind === "E") {
      socket.write(first);
      socket.on("data", (chunk: Buffer) => socket.write(chunk));
      socket.on("end", () => socket.end());
    } else socket.write(first);
  });
}

/** The same connection with one static buffer: the sink must cost less than what it measures. */
function swallow(socket: Socket): void {
  socket.pause();
  const fd = calls?.duplicate(descriptorOf(socket)) ?? -1;
  if (fd < 0) return void socket.resume();
  socket.destroy();
  new Socket({ fd, onread: { buffer: shared, callback: () => true } }).on("error", () => {});
}
const calls = openRelayCalls();

/** Answers once the other end has acknowledged, where a greeting is needed; `on` gets all that comes behind it. */
async function open({ host = HOST, port, to }: Door, on: (bytes: number) => void): Promise<Socket> {
  let greeted: ((bytes: number) => void) | null = null;
  // One static buffer: the load generator must cost less than what it measures.
  const onread = { buffer: shared, callback: (bytes: number) => ((greeted ?? on)(bytes), true) };
  const socket = connect({ port, host, noDelay: true, allowHalfOpen: true, onread });
  await once(socket, "connect");
  socket.on("error", () => {}); // a reset at the end of a measurement
  if (to === null) return socket;
  const heard = async (request: string | Uint8Array, answerBytes: number): Promise<void> => {
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
    await heard(Uint8Array.of(5, 1, 0), 2);
    await heard(Uint8Array.of(5, 1, 0, 1, 127, 0, 0, 1, to.port >> 8, to.port & 255), 10);
  } else await heard(`CONNECT ${HOST}:${to.port} HTTP/1.1\r\nHost: ${HOST}:${to.port}\r\n\r\n`, 1);
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

async function connections({ door, parallel, ms }: Of<"connections">): Promise<TaskResult> {
  let amount = 0;
  let going = parallel;
  const startMs = performance.now();
  let lastMs = startMs;
  const one = async (): Promise<void> => {
    while (performance.now() - startMs < ms) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const socket = await open(door, () => resolve());
      socket.write("E");
      await promise;
      socket.end();
      await once(socket, "close");
      amount++;
      lastMs = performance.now();
    }
    going--;
  };
  const all = Promise.all(Array.from({ length: parallel }, one));
  await Promise.race([all, delay(ms + PATIENCE_MS, null, { ref: false })]);
  if (going > 0) console.error(`${going} connections of a load never ended`);
  return { amount, seconds: (lastMs - startMs) / 1_000 };
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

const held: Socket[] = [];

async function hold({ door, count }: Of<"hold">): Promise<TaskResult> {
  const startMs = performance.now();
  while (held.length < count) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = await open(door, () => resolve());
    socket.write("I");
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
  if (task.kind === "connections") return connections(task);
  if (task.kind === "latency") return latency(task);
  return task.kind === "hold" ? hold(task) : Promise.resolve(releaseHeld());
}

const [, , role, host = HOST] = process.argv;
if (role === "sink") {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, serveSink);
  server.listen({ port: 0, host, backlog: 4096 }, () => {
    process.send?.((server.address() as AddressInfo).port);
  });
} else if (role === "load") {
  process.on("message", (task: Task) => {
    void perform(task).then((result) => process.send?.(result));
  });
}
process.on("disconnect", () => process.exit(0));
