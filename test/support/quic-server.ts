/** A QUIC server on loopback, as far as tests of clients need one: it takes every address at its word. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { quicLibrary } from "#platform/quic.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import { Connection } from "#transport/quic/connection.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { readHeader } from "#transport/quic/wire/header.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import type { TestCertificate } from "./certificate.ts";
import { openQuicServerTls } from "./quic-tls.ts";

export interface QuicServerOptions {
  readonly alpn: string;
  /** Absent: one that the system chooses. */
  readonly port?: number;
  /** Absent: one for `server.test`. */
  readonly certificate?: TestCertificate;
  /** Absent: as many as a connection allows by itself. */
  readonly mostStreams?: number;
  readonly onStream: (stream: QuicStream, connection: Connection) => void;
  readonly onDatagram?: (payload: Uint8Array, connection: Connection) => void;
}

export interface QuicServer extends AsyncDisposable {
  readonly port: number;
  readonly connections: readonly Connection[];
  /** How each connection has ended, in their order; null: by us. */
  readonly ends: readonly (Error | null)[];
  /** False: what comes is dropped, and nothing is sent. */
  isOnline: boolean;
  /** Those that datagrams have come from, dropped ones included. */
  readonly ports: ReadonlySet<number>;
}

export async function openQuicServer(options: QuicServerOptions): Promise<QuicServer> {
  const ciphers = quicLibrary()?.ciphers ?? null;
  assert.ok(ciphers !== null);
  const { certificate, onStream, onDatagram = () => {}, mostStreams } = options;
  const numbers = mostStreams === undefined ? {} : { numbers: { maxStreamsBidi: mostStreams } };
  const openTls = openQuicServerTls({
    alpn: [options.alpn],
    ...(certificate === undefined ? {} : { certificate }),
  });
  const socket = createSocket("udp4");
  const ends: (Error | null)[] = [];
  const byPort = new Map<number, { connection: Connection; flush: () => void; timer: NodeJS.Timeout }>();
  const connections: Connection[] = [];
  const network = { isOnline: true };
  const ports = new Set<number>();

  const open = (first: Uint8Array, port: number) => {
    const { destination, source } = readHeader(new WireReader().reset(first));
    const wake = (): void => void setImmediate(flush);
    const connection: Connection = new Connection(
      { ciphers, openTls, congestion: new NewReno(), ...numbers },
      {
        send: (datagram) => {
          if (network.isOnline) socket.send(Buffer.from(datagram), port, "127.0.0.1");
        },
        wake,
        connected() {},
        stream: (stream) => onStream(stream, connection),
        datagram: (payload) => onDatagram(payload, connection),
        idle() {},
        ownId() {},
        moved() {},
        closed: (error) => void ends.push(error),
      },
      {
        original: new Uint8Array(destination),
        client: new Uint8Array(source),
        from: null,
        isValidated: true,
        retrySource: null,
        resetTokenOf: () => new Uint8Array(16),
      },
      performance.now(),
    );
    const flush = (): void => {
      const nowMs = performance.now();
      if (connection.deadlineMs <= nowMs) connection.onTimer(nowMs);
      if (connection.flush(nowMs)) wake();
    };
    const made = { connection, flush, timer: setInterval(flush, 5) };
    byPort.set(port, made);
    connections.push(connection);
    return made;
  };

  socket.on("message", (datagram, { port }) => {
    ports.add(port);
    if (!network.isOnline) return;
    const { connection, flush } = byPort.get(port) ?? open(datagram, port);
    connection.receive(new Uint8Array(datagram), performance.now());
    flush();
  });
  socket.bind(options.port ?? 0, "127.0.0.1");
  await once(socket, "listening");
  return Object.assign(network, {
    port: socket.address().port,
    connections,
    ends,
    ports,
    async [Symbol.asyncDispose]() {
      for (const { connection, timer } of byPort.values()) {
        clearInterval(timer);
        connection.close(0, "");
      }
      await new Promise<void>((resolve) => socket.close(() => resolve()));
    },
  });
}
