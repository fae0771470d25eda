/**
 * The two ends of a bare QUIC connection, in processes of their own. The first byte of a stream says what it is for: D the
 * server sends without end, U it takes without end.
 */
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { quicLibrary } from "#platform/quic.ts";
import { QuicClient } from "#transport/quic/client.ts";
import { Cubic } from "#transport/quic/congestion/cubic.ts";
import { Connection } from "#transport/quic/connection.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { readHeader } from "#transport/quic/wire/header.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import { openQuicClientTls, openQuicServerTls, quicCertificate } from "../test/support/quic-tls.ts";
import { bind, flowTo, USES_ECN } from "./quic-flow.ts";

export type QuicKind = "D" | "U";

/** What the client is told: the server, its certificate's fingerprint, and how long it moves bytes behind a warm-up. */
export interface QuicTask {
  readonly port: number;
  readonly fingerprint: string;
  readonly kind: QuicKind;
  readonly warmMs: number;
  readonly ms: number;
}

const BLOCK = Buffer.alloc(64 * 1024, "weir");
function endless(stream: QuicStream): void {
  const more = (): void => {
    while (!stream.destroyed && stream.write(BLOCK));
  };
  stream.on("drain", more);
  more();
}

function serve(stream: QuicStream): void {
  stream.on("error", () => {});
  stream.once("data", (first: Buffer) => {
    if (first[0] === 0x44) endless(stream);
    stream.on("data", () => {});
  });
}

/** One connection for each port that datagrams come from. */
async function server(): Promise<void> {
  const library = quicLibrary();
  if (library === null) throw new Error("this runtime has no QUIC");
  const { ciphers } = library;
  const openTls = openQuicServerTls();
  const connections = new Map<number, { readonly connection: Connection; readonly flush: () => void }>();
  const accept = (first: Uint8Array, port: number) => {
    const { destination, source } = readHeader(new WireReader().reset(first));
    let isDue = false;
    const wake = (): void => {
      if (!isDue) setImmediate(flush);
      isDue = true;
    };
    const connection: Connection = new Connection(
      { ciphers, openTls, congestion: new Cubic(), usesEcn: USES_ECN },
      {
        send: (datagram, { isMarked }) => socket.send(null, datagram, LOOPBACK_V4, port, isMarked),
        sendRun: (datagrams, size, { isMarked }) =>
          socket.sendRun(datagrams, size, LOOPBACK_V4, port, isMarked),
        wake,
        connected() {},
        stream: serve,
        datagram() {},
        idle() {},
        ownId() {},
        moved() {},
        closed: () => clearInterval(timer),
      },
      {
        original: new Uint8Array(destination),
        from: null,
        client: new Uint8Array(source),
        isValidated: true,
        retrySource: null,
        resetTokenOf: () => new Uint8Array(16),
      },
      performance.now(),
    );
    const flush = (): void => {
      isDue = false;
      if (connection.flush(performance.now())) wake();
    };
    const timer = setInterval(() => {
      const nowMs = performance.now();
      if (connection.deadlineMs > nowMs) return;
      connection.onTimer(nowMs);
      flush();
    }, 1);
    const made = { connection, flush: wake };
    connections.set(port, made);
    return made;
  };
  const socket = await bind((payload, { port }, ecn) => {
    const { connection, flush } = connections.get(port) ?? accept(payload, port);
    connection.receive(payload, performance.now(), null, ecn);
    flush();
  });
  process.send?.({ port: socket.port, fingerprint: quicCertificate.fingerprint });
}

/** Answers with the bytes that were moved behind the warm-up, and the seconds that it took. */
async function move({ port, fingerprint, kind, warmMs, ms }: QuicTask): Promise<void> {
  const library = quicLibrary();
  if (library === null) throw new Error("this runtime has no QUIC");
  const client = await QuicClient.open(
    {
      node: "bench",
      flow: await flowTo(port),
      server: { host: null, ip: LOOPBACK_V4, port },
      filter: null,
      ciphers: library.ciphers,
      openTls: await openQuicClientTls({ fingerprint }),
      congestion: new Cubic(),
      onDatagram() {},
      onStream: (stream) => stream.destroy(),
    },
    AbortSignal.timeout(10_000),
  );
  const stream = client.connection.open(true);
  if (stream === null) throw new Error("the server allows no stream");
  let amount = 0;
  stream.on("error", () => {});
  stream.on("data", (bytes: Buffer) => (amount += bytes.length));
  stream.write(kind);
  if (kind === "U") endless(stream);
  const moved = (): number => (kind === "U" ? (stream.send?.ackedBytes ?? 0) : amount);
  await new Promise((resolve) => setTimeout(resolve, warmMs));
  const [before, startMs] = [moved(), performance.now()];
  process.send?.("warm");
  await new Promise((resolve) => setTimeout(resolve, ms));
  const lost = client.connection.statistics.lostPackets;
  process.send?.({ amount: moved() - before, seconds: (performance.now() - startMs) / 1000, lost });
  client.close(0);
}

if (process.argv[2] === "server") await server();
else process.on("message", (task: QuicTask) => void move(task));
process.on("disconnect", () => process.exit());
