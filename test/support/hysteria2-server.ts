/** A hysteria2 server on loopback, as far as tests of the client need one: it takes every password and answers as it is told. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { quicLibrary } from "#platform/quic.ts";
import { encodeFields } from "#transport/http3/qpack.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import { Connection } from "#transport/quic/connection.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { readHeader } from "#transport/quic/wire/header.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import { openQuicServerTls } from "./quic-tls.ts";

const HEADERS_FRAME = 0x01;

export interface Hysteria2Server extends AsyncDisposable {
  readonly port: number;
  /** How each connection has ended, in their order; null: by us. */
  readonly ends: readonly (Error | null)[];
}

/** `answer`: the bytes that a stream for a destination gets. */
export async function openHysteria2Server(answer: Uint8Array): Promise<Hysteria2Server> {
  const native = quicLibrary();
  assert.ok(native !== null);
  const { ciphers } = native;
  const openTls = openQuicServerTls();
  const socket = createSocket("udp4");
  const ends: (Error | null)[] = [];
  const connections = new Map<number, { connection: Connection; flush: () => void; timer: NodeJS.Timeout }>();

  const open = (first: Uint8Array, port: number) => {
    const { destination, source } = readHeader(new WireReader().reset(first));
    const wake = (): void => void setImmediate(flush);
    const connection: Connection = new Connection(
      { ciphers, openTls, congestion: new NewReno() },
      {
        send: (datagram) => socket.send(Buffer.from(datagram), port, "127.0.0.1"),
        wake,
        connected() {},
        stream: (stream) => serve(stream, answer),
        datagram() {},
        ownId() {},
        closed: (error) => void ends.push(error),
      },
      {
        original: new Uint8Array(destination),
        client: new Uint8Array(source),
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
    connections.set(port, made);
    return made;
  };

  socket.on("message", (datagram, { port }) => {
    const { connection, flush } = connections.get(port) ?? open(datagram, port);
    connection.receive(new Uint8Array(datagram), performance.now());
    flush();
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    port: socket.address().port,
    ends,
    async [Symbol.asyncDispose]() {
      for (const { connection, timer } of connections.values()) {
        clearInterval(timer);
        connection.close(0, "");
      }
      await new Promise<void>((resolve) => socket.close(() => resolve()));
    },
  };
}

/** The first bytes tell an HTTP/3 request, which is to be authenticated, from a destination. */
function serve(stream: QuicStream, answer: Uint8Array): void {
  stream.on("error", () => {});
  if (stream.send === null) return void stream.resume();
  stream.once("data", (first: Buffer) => {
    if (first[0] !== HEADERS_FRAME) return stream.write(answer);
    const section = encodeFields([
      [":status", "233"],
      ["hysteria-udp", "true"],
      ["hysteria-cc-rx", "auto"],
    ]);
    assert.ok(section.length < 64);
    stream.end(Buffer.concat([Buffer.of(HEADERS_FRAME, section.length), section]));
  });
  stream.on("end", () => stream.end());
}
