/** Sessions of AnyTLS listeners whose frames workers read, from their first stream to their end. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import type { Direction } from "#core/meter.ts";
import { relay } from "#dataplane/event-loop/pump.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { connect as connectTls } from "node:tls";
import { anytls } from "#protocols/anytls/index.ts";
import * as wire from "#protocols/anytls/wire.ts";
import { openFrameClient, pingPong } from "../support/anytls-sessions.ts";
import { outcome, readAll, roundTrip } from "../support/client.ts";
import { openKeptClients } from "../support/kept-clients.ts";
import { REALITY } from "../support/reality-sides.ts";
import { framesTo, nodeOf, openServer, preambleOf, skip } from "../support/kept-sessions.ts";
import { echo, openTcpOrigin, source, untilHeldUp } from "../support/origin.ts";
import { unlimited } from "../support/relayed.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

test("one stream behind the other, of every size, stays with the worker", { skip }, async () => {
  await using server = await openServer();
  await using origin = await openTcpOrigin(echo);
  await using node = await nodeOf(server);
  for (const bytes of [1, 1000, 20_000, 70_000, 4 << 20, 3])
    await roundTrip(await node.connect(origin.port), bytes);
  assert.equal(server.kept.length, 6);
  await until("they have ended", () => server.ended.length === 6);
  assert.deepEqual(
    server.ended.map(({ upload }) => upload),
    [1, 1000, 20_000, 70_000, 4 << 20, 3],
  );
});

test("behind REALITY, too", { skip }, async () => {
  await using server = await openKeptClients(anytls, { users: { ann: "letmein" }, ...REALITY.server });
  await using origin = await openTcpOrigin(echo);
  await using node = await nodeOf(server, REALITY.client);
  const sizes = [1, 20_000, 300_000, 1 << 20];
  await Promise.all(sizes.map(async (size) => await roundTrip(await node.connect(origin.port), size)));
  await until("they have ended", () => server.ended.length === sizes.length);
  assert.equal(server.kept.length, sizes.length);
});

test("many streams of one session, all at once", { skip }, async () => {
  await using server = await openServer();
  await using origin = await openTcpOrigin(echo);
  const client = await framesTo(server);
  const sent = Array.from({ length: 20 }, (_, at) => randomBytes(50_000 + at * 1000));
  for (const at of sent.keys()) client.open(at + 1, origin.port);
  for (const _ of sent) assert.equal((await client.next()).command, wire.SYNACK);
  for (let from = 0; from < 80_000; from += 10_000)
    for (const [at, bytes] of sent.entries()) {
      const piece = bytes.subarray(from, from + 10_000);
      if (piece.length > 0) client.send(wire.encodeData(at + 1, piece));
    }
  for (const [at, bytes] of sent.entries())
    assert.ok((await client.untilGot(at + 1, bytes.length)).equals(bytes), `stream ${at + 1}`);
  await pingPong(client);
  client.socket.destroy();
  await until("they have ended", () => server.ended.length === sent.length);
});

test("ends from either side, in either order, and what comes with them", { skip }, async () => {
  let latest: Socket | null = null;
  await using origin = await openTcpOrigin((socket) => (latest = socket));
  await using server = await openServer();
  const client = await framesTo(server);
  const opened = async (id: number, first = ""): Promise<Socket> => {
    latest = null;
    client.open(id, origin.port);
    if (first === "") await client.expect(wire.SYNACK, id);
    else client.send(wire.encodeData(id, Buffer.from(first)), wire.encodeFrame(wire.FIN, id));
    await until("it is accepted", () => latest !== null);
    return latest as unknown as Socket;
  };
  const whole = await opened(1, "said at once, and over");
  assert.equal((await readAll(whole)).toString(), "said at once, and over");
  const second = await opened(2);
  second.end("the last words");
  await client.expect(wire.FIN, 2);
  assert.equal(client.got(2).toString(), "the last words");
  const third = await opened(3);
  third.write("some");
  await client.untilGot(3, 4);
  third.resetAndDestroy();
  await client.expect(wire.FIN, 3);
  const fourth = await opened(4);
  client.send(wire.encodeData(4, Buffer.from("bye")), wire.encodeFrame(wire.FIN, 4));
  assert.equal((await readAll(fourth)).toString(), "bye"); // and it never ends by itself
  await pingPong(client);
  await until("they have ended", () => server.ended.length === 4);
  const fifth = await opened(5);
  const failed = outcome(fifth);
  client.socket.destroy();
  assert.equal(await failed, "ECONNRESET");
});

test("torn frames, heartbeats, waste, and streams that are none", { skip }, async () => {
  await using server = await openServer();
  await using origin = await openTcpOrigin(echo);
  const client = await framesTo(server);
  client.send(wire.encodeData(77, Buffer.from("of none")), wire.encodeFrame(wire.FIN, 78));
  client.open(1, origin.port);
  await client.expect(wire.SYNACK, 1);
  const sent = randomBytes(3000);
  const bytes = Buffer.concat([
    wire.encodeWaste(300),
    wire.encodeData(1, sent.subarray(0, 1000)),
    wire.encodeFrame(wire.HEARTBEAT_REQUEST, 5),
    wire.encodeFrame(99, 1, Buffer.from("unknown")),
    wire.encodeData(1, sent.subarray(1000)),
  ]);
  for (const byte of bytes.subarray(0, 1400)) client.send(Buffer.of(byte));
  client.send(bytes.subarray(1400));
  await client.expect(wire.HEARTBEAT_RESPONSE, 5);
  assert.ok((await client.untilGot(1, 3000)).equals(sent));
  client.socket.destroy();
});

test(
  "a slow reader behind the server holds back what comes for it, and loses nothing",
  { skip },
  async () => {
    const accepted = Promise.withResolvers<Socket>();
    await using origin = await openTcpOrigin((socket) => accepted.resolve(socket.pause()));
    await using server = await openServer();
    await using node = await nodeOf(server);
    const stream = await node.connect(origin.port);
    const bytes = randomBytes(24 << 20);
    stream.end(bytes);
    const far = await accepted.promise;
    await untilHeldUp(() => bytes.length - stream.writableLength);
    assert.ok(stream.writableLength > 8 << 20);
    far.resume();
    assert.ok((await readAll(far)).equals(bytes));
  },
);

test("a slow client holds back what an origin says", { skip }, async () => {
  const { on, sent } = source(24 << 20);
  await using origin = await openTcpOrigin(on);
  await using server = await openServer();
  await using node = await nodeOf(server);
  const stream = await node.connect(origin.port);
  await untilHeldUp(sent);
  assert.ok(sent() < 20 << 20);
  assert.equal((await readAll(stream)).length, 24 << 20);
});

test("a removed user loses the session and its streams at once, others keep theirs", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using server = await openServer();
  const client = await framesTo(server);
  const bob = await openFrameClient(server.port, preambleOf("other"));
  for (const one of [client, bob]) {
    one.open(1, origin.port);
    await one.expect(wire.SYNACK, 1);
  }
  const idle = await framesTo(server);
  const gone = [outcome(client.socket), outcome(idle.socket)];
  server.inbound.replaceUsers([{ id: "bob", credential: "other", flow: null }]);
  assert.deepEqual(await Promise.all(gone), ["ECONNRESET", "ECONNRESET"]);
  await until("they have ended", () => server.ended.length === 1);
  await pingPong(bob);
  bob.send(wire.encodeData(1, Buffer.from("still here")));
  assert.equal((await bob.untilGot(1, 10)).toString(), "still here");
  bob.socket.destroy();
});

test("a listener that stops accepting keeps its sessions", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using server = await openServer();
  const client = await framesTo(server);
  await server.stopAccepting();
  client.open(1, origin.port);
  await client.expect(wire.SYNACK, 1);
  client.send(wire.encodeData(1, Buffer.from("later")));
  assert.equal((await client.untilGot(1, 5)).toString(), "later");
  client.socket.destroy();
});

test("streams that the event loop serves, beside those of the worker", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using server = await openServer();
  const client = await framesTo(server);
  client.open(1, origin.port);
  await client.expect(wire.SYNACK, 1);
  server.instead = (session) => {
    session.reply(null);
    session.stream.on("error", () => {}).pipe(session.stream);
  };
  client.open(2, origin.port);
  await client.expect(wire.SYNACK, 2);
  const sent = randomBytes(300_000);
  for (const id of [1, 2]) client.send(wire.encodeData(id, sent));
  for (const id of [1, 2]) assert.ok((await client.untilGot(id, sent.length)).equals(sent));
  server.instead = (session) => session.reply(new DialError("refused", "it is closed"));
  client.open(3, origin.port);
  const { command, streamId, data } = await client.next();
  assert.deepEqual([command, streamId, data.toString()], [wire.SYNACK, 3, "refused"]);
  await client.expect(wire.FIN, 3);
  client.send(wire.encodeFrame(wire.FIN, 2));
  client.send(wire.encodeData(1, Buffer.from("!")));
  await client.untilGot(1, sent.length + 1);
  client.socket.destroy();
});

test(
  "a bulk stream that the event loop has begun goes to a worker, and the session stays",
  { skip },
  async () => {
    await using origin = await openTcpOrigin(echo);
    await using server = await openServer();
    const relayed = { upload: 0, download: 0 };
    const isOver = Promise.withResolvers<void>();
    server.instead = (session) => {
      const { signal } = new AbortController();
      const far = connect({
        port: session.metadata.destination.port,
        host: "127.0.0.1",
        allowHalfOpen: true,
      });
      session.reply(null);
      const onBytes = (direction: Direction, bytes: number): void => void (relayed[direction] += bytes);
      const times = { timers: new IdleTimers(), idleMs: Infinity, halfClosedIdleMs: Infinity };
      const options = { backend: server.engine, signal, onBytes, ...times };
      isOver.resolve(once(far, "connect").then(() => relay(session.stream, far, unlimited, options)));
    };
    const client = await framesTo(server);
    const sent = randomBytes(3 << 20);
    client.open(1, origin.port);
    await client.expect(wire.SYNACK, 1);
    client.send(wire.encodeData(1, sent));
    assert.ok((await client.untilGot(1, sent.length)).equals(sent));
    client.send(wire.encodeFrame(wire.FIN, 1));
    await isOver.promise;
    assert.deepEqual(relayed, { upload: sent.length, download: sent.length });
    await pingPong(client);
    client.socket.destroy();
  },
);

test("a destination that cannot be reached is told, and the session goes on", { skip }, async () => {
  const closed = await openTcpOrigin(echo);
  await closed[Symbol.asyncDispose]();
  await using origin = await openTcpOrigin(echo);
  await using server = await openServer();
  server.instead = null;
  const client = await framesTo(server);
  client.open(1, closed.port);
  await until("it has failed", () => server.failures.length === 1);
  server.sessions[0]?.reply(server.failures[0] ?? null);
  const { command, data } = await client.next();
  assert.deepEqual([command, data.toString()], [wire.SYNACK, "refused"]);
  await client.expect(wire.FIN, 1);
  client.open(2, origin.port);
  await client.expect(wire.SYNACK, 2);
  client.socket.destroy();
});

test("what a client may not do ends the session", { skip }, async () => {
  await using server = await openServer();
  const first = wire.encodeFrame(wire.SYN, 1);
  for (const [frames, answer] of [
    [[first], wire.ALERT],
    [[wire.encodeFrame(wire.ALERT, 0)], null],
  ] as const) {
    const socket = connectTls({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false });
    socket.on("error", () => {});
    await once(socket, "secureConnect");
    socket.write(Buffer.concat([preambleOf("letmein"), ...frames]));
    const bytes = await readAll(socket);
    assert.equal(bytes[0] ?? null, answer);
  }
});

test(
  "a worker that dies takes its sessions along, and what the event loop served of them",
  { skip },
  async () => {
    using killer = new WorkerKiller();
    await using origin = await openTcpOrigin(echo);
    await using server = await openServer();
    const client = await framesTo(server);
    client.open(1, origin.port);
    await client.expect(wire.SYNACK, 1);
    const taken = Promise.withResolvers<string | null>();
    server.instead = (session) => {
      session.reply(null);
      taken.resolve(outcome(session.stream.resume()));
    };
    client.open(2, origin.port);
    await client.expect(wire.SYNACK, 2);
    const gone = outcome(client.socket);
    await killer.kill("relay");
    await gone;
    await until("its stream has ended", () => server.ended.length === 1);
    await taken.promise;
  },
);
