/**
 * What idle connections of QUIC cost a server: CPU time of its thread for each PING of a client that keeps its connection
 * alive, and memory. Both sides are processes of their own; all clients have one socket, and are told apart by their ids.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { loadavg } from "node:os";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { BUFFERS, type DatagramSocket, DatagramSockets } from "#net/udp/datagram-socket.ts";
import { type QuicCiphers, quicLibrary } from "#platform/quic.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import { Connection } from "#transport/quic/connection.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import type { OpenQuicTls } from "#transport/quic/tls.ts";
import { openQuicClientTls, openQuicServerTls, quicCertificate } from "../test/support/quic-tls.ts";
import { endOf, forkPeer } from "./relay-subjects.ts";

export const NAME = "quic-idle";

const CONNECTIONS = Number(process.env["BENCH_IDLE"] ?? 1000);
const SECONDS = 5;
/** Clients are asked for a sign of life so often. */
const PING_MS = Number(process.env["BENCH_PING_MS"] ?? 2000);
/** Handshakes that are under way together. */
const TOGETHER = 16;
const TICK_MS = 1;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface IdleTask {
  readonly port: number;
  readonly fingerprint: string;
}

interface Usage {
  /** CPU time of the thread before the heap was collected for this, and behind that. */
  readonly untilMs: number;
  readonly fromMs: number;
  readonly residentKiB: number;
  readonly heapKiB: number;
  readonly outsideKiB: number;
}

function ciphersOf(): QuicCiphers {
  const library = quicLibrary();
  if (library === null) throw new Error("this runtime has no QUIC");
  return library.ciphers;
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

async function server(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const at = { ip: LOOPBACK_V4, port: 0 };
  const opened = await openDatagrams({ at, reusePort: false, configure() {} }, new DatagramSockets());
  new QuicPorts().open(opened.socket, {
    ciphers: ciphersOf(),
    openTls: openQuicServerTls(),
    makeCongestion: () => new NewReno(),
    filter: null,
    closeCode: 0,
    numbers: { idleTimeoutMs: 600_000 },
    onConnection: (one) => {
      setImmediate(() => one.settle());
      return { onStream: (stream) => void stream.on("error", () => {}).resume(), onDatagram() {} };
    },
  });
  process.on("message", () => {
    const untilMs = threadMs();
    for (let count = 0; count < 3; count++) collect();
    const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage();
    process.send?.({
      untilMs,
      fromMs: threadMs(),
      residentKiB: rss / 1024,
      heapKiB: heapUsed / 1024,
      outsideKiB: (external + arrayBuffers) / 1024,
    } satisfies Usage);
  });
  process.send?.({
    port: opened.socket.local.port,
    fingerprint: quicCertificate.fingerprint,
  } satisfies IdleTask);
}

class Clients {
  readonly #byId = new Map<string, Connection>();
  readonly #dirty = new Set<Connection>();
  readonly #ciphers = ciphersOf();
  readonly #socket: DatagramSocket;
  readonly #port: number;

  static async open(port: number): Promise<Clients> {
    const socket = createSocket({ type: "udp4", ...BUFFERS });
    socket.on("error", () => {});
    socket.bind(0, LOOPBACK_V4);
    await once(socket, "listening");
    return new Clients(port, (on) => new DatagramSockets().take(socket, on));
  }

  private constructor(port: number, take: (on: (payload: Buffer) => void) => DatagramSocket) {
    this.#port = port;
    this.#socket = take((payload) => this.#receive(payload));
    this.#socket.begin();
    setInterval(() => this.#tick(), TICK_MS);
  }

  #receive(payload: Buffer): void {
    const at = (payload[0] ?? 0) & 0x80 ? 6 : 1;
    const connection = this.#byId.get(payload.toString("latin1", at, at + 8));
    connection?.receive(payload, performance.now());
    if (connection !== undefined) this.#wake(connection);
  }

  #wake(connection: Connection): void {
    if (this.#dirty.size === 0)
      setImmediate(() => {
        const dirty = [...this.#dirty];
        this.#dirty.clear();
        for (const one of dirty) if (one.flush(performance.now())) this.#wake(one);
      });
    this.#dirty.add(connection);
  }

  #tick(): void {
    const nowMs = performance.now();
    for (const connection of this.#byId.values()) {
      if (connection.deadlineMs > nowMs) continue;
      connection.onTimer(nowMs);
      this.#wake(connection);
    }
  }

  async add(openTls: OpenQuicTls): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const send = (datagram: Uint8Array): void => this.#socket.send(null, datagram, LOOPBACK_V4, this.#port);
    const connection: Connection = new Connection(
      {
        ciphers: this.#ciphers,
        openTls,
        congestion: new NewReno(),
        keepAliveMs: PING_MS,
        numbers: { idleTimeoutMs: 600_000 },
      },
      {
        send,
        wake: () => this.#wake(connection),
        connected: () => resolve(),
        stream() {},
        datagram() {},
        idle() {},
        ownId() {},
        moved() {},
        closed: (error) => reject(error ?? new Error("closed")),
      },
      null,
      performance.now(),
    );
    promise.catch(() => {});
    this.#byId.set(Buffer.from(connection.firstId).toString("latin1"), connection);
    connection.begin();
    this.#wake(connection);
    await promise;
    connection.releaseTls();
  }

  /** From now on each asks for signs of life, because it has a stream: one behind the other, as clients do. */
  async openStreams(): Promise<void> {
    const connections = [...this.#byId.values()];
    const startMs = performance.now();
    for (const [index, connection] of connections.entries()) {
      const atMs = startMs + (index * PING_MS) / connections.length;
      if (atMs > performance.now()) await pause(atMs - performance.now());
      connection
        .open(true)
        ?.on("error", () => {})
        .write("x");
    }
  }
}

/** Its first message makes the connections, the second one has each ask for signs of life. */
async function client(): Promise<void> {
  const [{ port, fingerprint }] = (await once(process, "message")) as [IdleTask];
  const openTls = await openQuicClientTls({ fingerprint });
  const clients = await Clients.open(port);
  for (let count = 0; count < CONNECTIONS; count += TOGETHER)
    await Promise.all(Array.from({ length: TOGETHER }, () => clients.add(openTls)));
  process.send?.("done");
  await once(process, "message");
  await clients.openStreams();
  process.send?.("done");
}

export async function run(out: (line: string) => void): Promise<void> {
  const one = forkPeer("./quic-idle.ts", ["server"]);
  const other = forkPeer("./quic-idle.ts", ["client"]);
  const usage = async (): Promise<Usage> => {
    one.send("usage");
    const [now] = (await once(one, "message")) as [Usage];
    return now;
  };
  try {
    const [task] = (await once(one, "message")) as [IdleTask];
    const empty = await usage();
    other.send(task);
    await once(other, "message");
    await pause(1000);
    const idle = await usage();
    await pause(SECONDS * 1000);
    const silent = await usage();
    other.send(task);
    await once(other, "message");
    await pause(1.5 * PING_MS);
    const before = await usage();
    await pause(SECONDS * 1000);
    const after = await usage();
    const each = (of: (usage: Usage) => number): string => ((of(idle) - of(empty)) / CONNECTIONS).toFixed(1);
    const pings = (CONNECTIONS * SECONDS * 1000) / PING_MS;
    out(
      `${CONNECTIONS} connections, load ${(loadavg()[0] ?? 0).toFixed(1)}: silent ${(silent.untilMs - idle.fromMs).toFixed(1)} ms in ${SECONDS} s, ` +
        `a PING ${(((after.untilMs - before.fromMs) * 1000) / pings).toFixed(1)} µs; KiB each: ` +
        `resident ${each((usage) => usage.residentKiB)}, heap ${each((usage) => usage.heapKiB)}, buffers ${each((usage) => usage.outsideKiB)}`,
    );
  } finally {
    await endOf(other);
    await endOf(one);
  }
}

const role = process.argv[2];
if (role === "server") await server();
if (role === "server" || role === "client") process.on("disconnect", () => process.exit());
if (role === "client") await client();
