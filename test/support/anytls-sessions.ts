/** Sessions of an AnyTLS listener without its users: every stream is relayed to where it asks for; and a client of single frames. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { connect } from "node:tls";
import type { Direction, Meter } from "#core/meter.ts";
import type { Destination } from "#core/session.ts";
import { dialTcp } from "#net/dial/dial.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { DEFAULT_SCHEME } from "#protocols/anytls/padding.ts";
import { ServerSession, type ServerStream } from "#protocols/anytls/server-session.ts";
import * as wire from "#protocols/anytls/wire.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import { relay } from "#dataplane/event-loop/pump.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import type { TlsServer } from "#core/tls.ts";
import { type Frames, framesOver } from "./anytls-frames.ts";
import { unlimited } from "./relayed.ts";

export interface SessionsOptions {
  readonly backend: RelayBackend | null;
  readonly meter?: Meter;
}

export interface Sessions extends AsyncDisposable {
  readonly port: number;
  readonly bytes: Readonly<Record<Direction, number>>;
  /** Streams that are over. */
  readonly settled: number;
  untilSettled(count: number): Promise<void>;
  /** Destroys open streams, as code outside the session would. */
  kill(): void;
}

export async function openSessions(
  tls: TlsServer,
  { backend, meter = unlimited }: SessionsOptions,
): Promise<Sessions> {
  const bytes = { upload: 0, download: 0 };
  const ends = new EventEmitter();
  const timers = new IdleTimers();
  const open = new Set<ServerSession>();
  let settled = 0;
  let stop = new AbortController();
  const serve = async (stream: ServerStream, { port }: Destination): Promise<void> => {
    const { signal } = stop;
    const remote = await dialTcp({ ip: LOOPBACK_V4, port }, { signal, timeoutMs: 5_000, sockets: null });
    stream.answer(null);
    await relay(stream, remote, meter, {
      signal,
      onBytes: (direction, count) => void (bytes[direction] += count),
      timers,
      idleMs: Infinity,
      halfClosedIdleMs: Infinity,
      backend,
    });
    settled++;
    ends.emit("end");
  };
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on("error", () => {});
    void tls.accept(socket).then(({ stream }) => {
      const session = new ServerSession(stream, {
        scheme: DEFAULT_SCHEME,
        onStream: (one, destination) => void serve(one, destination).catch((error) => one.answer(error)),
        onClosed: () => open.delete(session),
      });
      open.add(session);
    });
  });
  server.listen(0, LOOPBACK_V4);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    bytes,
    get settled() {
      return settled;
    },
    async untilSettled(count) {
      while (settled < count) await once(ends, "end");
    },
    kill() {
      stop.abort();
      stop = new AbortController();
    },
    async [Symbol.asyncDispose]() {
      for (const session of open) session.close(new Error("the test is over"));
      stop.abort();
      server.close();
      await once(server, "close");
    },
  };
}

/** A connected client that has said its settings. */
export interface FrameClient extends Frames {
  /** SYN and the target. */
  open(id: number, port: number): void;
}

/** `preamble`: what proves it to a listener with users. */
export async function openFrameClient(port: number, preamble?: Buffer): Promise<FrameClient> {
  const socket = connect({ port, host: LOOPBACK_V4, rejectUnauthorized: false });
  socket.setNoDelay(true).on("error", () => {});
  await once(socket, "secureConnect");
  const frames = framesOver(socket);
  if (preamble !== undefined) frames.send(preamble);
  const settings = wire.encodeSettings({ v: "2", client: "test", "padding-md5": DEFAULT_SCHEME.md5 });
  frames.send(wire.encodeFrame(wire.SETTINGS, 0, settings));
  await frames.expect(wire.SERVER_SETTINGS, 0);
  const open = (id: number, to: number): void => {
    const target = encodeSocksAddress({ host: null, ip: LOOPBACK_V4, port: to });
    frames.send(wire.encodeFrame(wire.SYN, id), wire.encodeData(id, target));
  };
  return { ...frames, open };
}

/** What a stream moves before it is worth a thread, and some. */
export const BULK_BYTES = 400_000;

/** A stream to an echo that has moved enough bytes to be offloaded to a worker, if there is one. */
export async function openBulk(client: FrameClient, id: number, port: number): Promise<Buffer> {
  const sent = randomBytes(BULK_BYTES);
  client.open(id, port);
  await client.expect(wire.SYNACK, id);
  client.send(wire.encodeData(id, sent));
  assert.ok((await client.untilGot(id, sent.length)).equals(sent));
  return sent;
}

export async function pingPong(client: Frames): Promise<void> {
  client.send(wire.encodeFrame(wire.HEARTBEAT_REQUEST, 9));
  await client.expect(wire.HEARTBEAT_RESPONSE, 9);
}
