import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { connect, type AddressInfo, type Socket } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { test } from "node:test";
import { movableClock } from "../../../test/support/movable-clock.ts";
import { Http2Pool } from "./pool.ts";

const BOUNDS = { maxConnections: 1, minStreams: 0, maxStreams: 0, pingIntervalMs: 0 };
const LONG_MS = 5_000;

const openPool = (dial: () => Promise<Duplex>) =>
  new Http2Pool({
    ...BOUNDS,
    dial: async () => ({ stream: await dial(), alpn: null, serverName: null, bypass: null }),
  });

/** A request whose answer is not read. */
const ask = async (pool: Http2Pool) =>
  (await pool.request({ ":path": "/" }, new AbortController().signal, null)).on("error", () => {});

test("a connection whose server says nothing takes no further requests", async () => {
  using clock = movableClock();
  const far: Duplex[] = [];
  const pool = openPool(async () => {
    const [near, other] = duplexPair();
    far.push(other.resume());
    return near;
  });
  await ask(pool);
  await ask(pool);
  assert.equal(far.length, 1);
  clock.move(LONG_MS);
  await ask(pool);
  assert.equal(far.length, 2);
  await pool[Symbol.asyncDispose]();
  for (const end of far) end.destroy();
});

test("one whose server has answered goes on, however long that was ago", async () => {
  using clock = movableClock();
  const server = createServer();
  const streams: ServerHttp2Stream[] = [];
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    streams.push(stream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  const pool = openPool(async () => {
    const socket = connect({ port, host: "127.0.0.1" });
    sockets.push(socket);
    await once(socket, "connect");
    return socket;
  });
  const first = await ask(pool);
  await once(server, "stream");
  clock.move(LONG_MS / 2);
  streams[0]?.respond({ ":status": 200 });
  await once(first, "response");
  clock.move(LONG_MS);
  await ask(pool);
  clock.move(LONG_MS / 2);
  await ask(pool);
  assert.equal(sockets.length, 1);
  for (const socket of sockets) socket.destroy();
  server.close();
});
