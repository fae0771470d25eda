/** The three processes of the flood: a server that sends back what it reads, its clients, and who floods it. */
import { once } from "node:events";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { openDatagramBatches } from "#platform/linux/datagram-batches.ts";
import { openLibc } from "#platform/linux/libc.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { type QuicLibrary, quicLibrary } from "#platform/quic.ts";
import { QuicClient } from "#transport/quic/client.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { openQuicClientTls, openQuicServerTls, quicCertificate } from "../test/support/quic-tls.ts";
import { flowTo } from "./quic-flow.ts";

export interface FloodTask {
  readonly port: number;
  readonly fingerprint: string;
}

export interface FloodSend extends FloodTask {
  /** To another socket, which is not read: what the load costs the machine alone. */
  readonly isElsewhere: boolean;
  readonly ms: number;
  /** Initials a second. */
  readonly rate: number;
}

export interface RoundTrips {
  /** Milliseconds, in order; and those without an answer. */
  readonly p50: number;
  readonly p99: number;
  readonly count: number;
  readonly unanswered: number;
}

const CLIENTS = 20;
const EACH_MS = 50;
const PIECE = 32;
const AF_INET = 2;
const SOCK_DGRAM = 2;
const SOCK_RAW = 3;
const LOOPBACK = Uint8Array.of(127, 0, 0, 1);
const IPPROTO_RAW = 255;
const IPPROTO_UDP = 17;
const HEAD_BYTES = 28;
const INITIAL_BYTES = 1200;
const TICK_MS = 1;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function libraryOf(): QuicLibrary {
  const library = quicLibrary();
  if (library === null) throw new Error("this runtime has no QUIC");
  return library;
}

async function server(): Promise<void> {
  const at = { ip: LOOPBACK_V4, port: 0 };
  const opened = await openDatagrams({ at, reusePort: false, configure() {} }, new DatagramSockets());
  new QuicPorts().open(opened.socket, {
    ciphers: libraryOf().ciphers,
    openTls: openQuicServerTls(),
    makeCongestion: () => new NewReno(),
    filter: null,
    closeCode: 0,
    onConnection: (one) => {
      setImmediate(() => one.settle());
      return { onStream: (stream) => void stream.on("error", () => {}).pipe(stream), onDatagram() {} };
    },
  });
  process.send?.({ port: opened.socket.local.port, fingerprint: quicCertificate.fingerprint });
}

async function streamTo({ port, fingerprint }: FloodTask): Promise<QuicStream> {
  const client = await QuicClient.open(
    {
      node: "bench",
      flow: await flowTo(port),
      server: { host: null, ip: LOOPBACK_V4, port },
      filter: null,
      ciphers: libraryOf().ciphers,
      openTls: await openQuicClientTls({ fingerprint }),
      congestion: new NewReno(),
      onDatagram() {},
      onStream: (stream) => stream.destroy(),
    },
    AbortSignal.timeout(10_000),
  );
  const stream = client.connection.open(true);
  if (stream === null) throw new Error("the server allows no stream");
  return stream;
}

/** One piece after another, `EACH_MS` apart. */
class Asker {
  readonly tripsMs: number[] = [];
  readonly #stream: QuicStream;
  #sentAtMs = 0;
  #got = 0;

  constructor(stream: QuicStream) {
    this.#stream = stream.on("error", () => {});
    stream.on("data", (bytes: Buffer) => this.#onData(bytes.length));
  }

  get isWaiting(): boolean {
    return this.#sentAtMs > 0;
  }

  ask(): void {
    if (this.isWaiting) return;
    this.#sentAtMs = performance.now();
    this.#got = 0;
    this.#stream.write(Buffer.alloc(PIECE));
  }

  #onData(bytes: number): void {
    this.#got += bytes;
    if (this.#got < PIECE) return;
    this.tripsMs.push(performance.now() - this.#sentAtMs);
    this.#sentAtMs = 0;
  }
}

/** Connects, and measures for so long at each further message. */
async function client(): Promise<void> {
  const [task] = (await once(process, "message")) as [FloodTask];
  const askers: Asker[] = [];
  for (let count = 0; count < CLIENTS; count++) askers.push(new Asker(await streamTo(task)));
  process.send?.("done");
  process.on("message", (ms: number) => void measure(askers, ms));
}

async function measure(askers: readonly Asker[], ms: number): Promise<void> {
  for (const asker of askers) asker.tripsMs.length = 0;
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs)
    for (const asker of askers) {
      asker.ask();
      await pause(EACH_MS / CLIENTS);
    }
  const trips = askers.flatMap(({ tripsMs }) => tripsMs).toSorted((a, b) => a - b);
  process.send?.({
    p50: trips[Math.floor(trips.length * 0.5)] ?? Infinity,
    p99: trips[Math.floor(trips.length * 0.99)] ?? Infinity,
    count: trips.length,
    unanswered: askers.filter(({ isWaiting }) => isWaiting).length,
  } satisfies RoundTrips);
}

/** IPv4 and UDP of a datagram to ourselves; the kernel fills in what is left zero (raw(7)). */
function headTo(port: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = 0x45;
  head[8] = 64;
  head[9] = IPPROTO_UDP;
  head.set([127, 0, 0, 1], 16);
  head.writeUInt16BE(port, 22);
  head.writeUInt16BE(HEAD_BYTES - 20 + INITIAL_BYTES, 24);
  return head;
}

/** The first packet of a client that is about to connect, as anybody can write it. */
async function initial(fingerprint: string): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const { promise: closed } = Promise.withResolvers<void>();
  const opening = QuicClient.open(
    {
      node: "bench",
      flow: {
        send: ({ payload }) => resolve(Buffer.from(payload)),
        receive() {},
        closed,
        async [Symbol.asyncDispose]() {},
      },
      server: { host: null, ip: LOOPBACK_V4, port: 1 },
      filter: null,
      ciphers: libraryOf().ciphers,
      openTls: await openQuicClientTls({ fingerprint }),
      congestion: new NewReno(),
      onDatagram() {},
      onStream() {},
    },
    AbortSignal.timeout(1000),
  );
  opening.catch(() => {});
  return promise;
}

/** Each of another connection and from another address. */
async function flood({ port, fingerprint, rate, ms, isElsewhere }: FloodSend): Promise<void> {
  const batches = openDatagramBatches(false);
  const libc = openLibc();
  if (batches === null || libc === null) throw new Error("this runtime sends no batches");
  const outgoing = batches.send.open(libc.socket(AF_INET, SOCK_RAW, IPPROTO_RAW));
  const name = new Uint8Array(SOCKADDR_BYTES);
  const to = name.slice(0, encodeSockaddr(name, { address: LOOPBACK, port: 0 }));
  const unread = libc.socket(AF_INET, SOCK_DGRAM);
  libc.bind(unread, name.slice(0, encodeSockaddr(name, { address: LOOPBACK, port: port ^ 1 })));
  const [head, packet] = [headTo(isElsewhere ? port ^ 1 : port), await initial(fingerprint)];
  const startMs = performance.now();
  let sent = 0;
  for (let nowMs = startMs; nowMs < startMs + ms; nowMs = performance.now()) {
    for (const due = ((nowMs - startMs) * rate) / 1000; sent < due; sent++) {
      head.writeUInt32BE(0x7f00_0000 | (Math.random() * 0xff_ffff), 12);
      head.writeUInt16BE(1024 + Math.random() * 60_000, 20);
      packet.writeUInt32BE(Math.random() * 2 ** 32, 6);
      batches.send.put(outgoing, head, packet, to);
    }
    batches.send.flush();
    await pause(TICK_MS);
  }
  for (const fd of [outgoing.fd, unread]) libc.close(fd);
  process.send?.(sent / ((performance.now() - startMs) / 1000));
}

const role = process.argv[2];
if (role === "server") await server();
else if (role === "client") await client();
else if (role === "flood") process.on("message", (task: FloodSend) => void flood(task));
process.on("disconnect", () => process.exit());
