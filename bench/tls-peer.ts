/**
 * The load of the TLS benchmark: clients that cost next to nothing, by the runtime's own libssl on descriptors in one
 * epoll loop. Their sinks are those of the relay benchmark.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { descriptorOf } from "#core/handover.ts";
import { openRelayCalls, READABLE, WRITABLE, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { openSsl, type Ssl } from "#platform/linux/ssl.ts";

export type TlsTask =
  | {
      readonly what: "bulk";
      readonly port: number;
      /** Hex; goes in front of the byte that tells the sink what to do. */
      readonly header: string;
      readonly way: "down" | "up";
      readonly streams: number;
      readonly ms: number;
    }
  | { readonly what: "handshakes"; readonly port: number; readonly parallel: number; readonly ms: number };

export interface TlsResult {
  readonly amount: number;
  readonly seconds: number;
}

const HOST = "127.0.0.1";
const WARM_UP_MS = 300;
const PIECE = 64 * 1024;

const calls = openRelayCalls() as RelayCalls;
const ssl = openSsl(calls.buffer) as Ssl;
const { functions } = process.getBuiltinModule("node:ffi").dlopen(null, {
  SSL_new: { arguments: ["pointer"], return: "pointer" },
  SSL_set_fd: { arguments: ["pointer", "i32"], return: "i32" },
  SSL_set_connect_state: { arguments: ["pointer"], return: "void" },
  TLS_client_method: { arguments: [], return: "pointer" },
  SSL_CTX_new: { arguments: ["pointer"], return: "pointer" },
  SSL_CTX_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_CTX_set_ciphersuites: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_CTX_set_default_read_buffer_len: { arguments: ["pointer", "u64"], return: "void" },
});
const context = newContext();

/** Trusts everybody, and agrees with everybody on one cipher. */
function newContext(): bigint {
  const made = functions.SSL_CTX_new(functions.TLS_client_method());
  functions.SSL_CTX_ctrl(made, 33, 1n | 2n, 0n); // partial writes, moving buffers
  functions.SSL_CTX_set_ciphersuites(made, Buffer.from("TLS_AES_128_GCM_SHA256\0"));
  functions.SSL_CTX_set_default_read_buffer_len(made, 131_072n);
  return made;
}

interface Client {
  readonly fd: number;
  readonly object: bigint;
}

async function dial(port: number): Promise<Client> {
  const socket = connect({ port, host: HOST, noDelay: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  const fd = calls.duplicate(descriptorOf(socket));
  socket.destroy();
  const object = functions.SSL_new(context);
  functions.SSL_set_fd(object, fd);
  functions.SSL_set_connect_state(object);
  ssl.readAhead(object);
  return { fd, object };
}

/** Blocks. */
function shake(epoll: number, { object }: Client): void {
  for (;;) {
    const answer = ssl.handshake(object);
    if (answer === 1) return;
    if (typeof answer === "string") throw new Error(answer);
    calls.wait(epoll, 5_000);
  }
}

function close({ fd, object }: Client): void {
  ssl.free(object);
  calls.reset(fd);
}

async function bulk({
  port,
  header,
  way,
  streams,
  ms,
}: Extract<TlsTask, { what: "bulk" }>): Promise<TlsResult> {
  const epoll = calls.openEpoll();
  const clients: Client[] = [];
  for (let at = 0; at < streams; at++) {
    const client = await dial(port);
    calls.watch(epoll, client.fd, at);
    clients.push(client);
    shake(epoll, client);
    const first = Buffer.concat([Buffer.from(header, "hex"), Buffer.from(way === "down" ? "D" : "U")]);
    calls.buffer.set(first);
    ssl.write(client.object, first.length);
  }
  await new Promise((resolve) => setTimeout(resolve, 100)); // the sink has read what it is to do
  let amount = 0;
  const ready = new Set(clients.map((_, at) => at));
  const turn = (at: number): void => {
    const { object } = clients[at] as Client;
    const moved = way === "down" ? ssl.read(object, calls.buffer.length) : ssl.write(object, PIECE);
    amount += Math.max(0, moved);
    if (way === "down" ? ssl.outcome < 0 : moved < PIECE) ready.delete(at);
  };
  const runUntil = (untilMs: number): void => {
    while (performance.now() < untilMs) {
      const count = calls.wait(epoll, ready.size > 0 ? 0 : 100);
      for (let index = 0; index < count; index++)
        if ((calls.eventsAt(index) & (way === "down" ? READABLE : WRITABLE)) !== 0)
          ready.add(calls.dataAt(index));
      for (const at of ready) turn(at);
    }
  };
  runUntil(performance.now() + WARM_UP_MS);
  const [before, startMs] = [amount, performance.now()];
  runUntil(startMs + ms);
  const result = { amount: amount - before, seconds: (performance.now() - startMs) / 1_000 };
  clients.forEach(close);
  calls.close(epoll);
  return result;
}

async function handshakes({
  port,
  parallel,
  ms,
}: Extract<TlsTask, { what: "handshakes" }>): Promise<TlsResult> {
  const startMs = performance.now();
  let amount = 0;
  const epoll = calls.openEpoll();
  while (performance.now() - startMs < ms) {
    const clients = await Promise.all(Array.from({ length: parallel }, () => dial(port)));
    for (const [at, { fd }] of clients.entries()) calls.watch(epoll, fd, at);
    const open = new Set(clients);
    while (open.size > 0) {
      for (const client of open) {
        const answer = ssl.handshake(client.object);
        if (typeof answer === "string") throw new Error(answer);
        if (answer === 1) open.delete(client);
      }
      if (open.size > 0) calls.wait(epoll, 5_000);
    }
    amount += clients.length;
    clients.forEach(close);
  }
  calls.close(epoll);
  return { amount, seconds: (performance.now() - startMs) / 1_000 };
}

process.on("message", (task: TlsTask) => {
  void (task.what === "bulk" ? bulk(task) : handshakes(task)).then((result) => process.send?.(result));
});
process.on("disconnect", () => process.exit());
