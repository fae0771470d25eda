/** Sessions of smux and yamux whose frames workers read, from their first stream to their end. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { DialError } from "#core/errors.ts";
import type { Direction } from "#core/meter.ts";
import { relay } from "#dataplane/event-loop/pump.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { encodeEnd, encodeHalfEnd } from "#transport/mux/smux-frame.ts";
import { outcome, readAll, roundTrip } from "../support/client.ts";
import { framesTo, type MuxClient, nodeOf, openServer, requestFor } from "../support/kept-mux.ts";
import { skip } from "../support/kept-sessions.ts";
import { TONGUES } from "../support/mux-frames.ts";
import { echo, openTcpOrigin, source, untilHeldUp } from "../support/origin.ts";
import { unlimited } from "../support/relayed.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

/** Behind the answer. */
const said = async (client: MuxClient, id: number, bytes: number): Promise<Buffer> =>
  (await client.got(id, 1 + bytes)).subarray(1);

/** The session goes on. */
async function goesOn(client: MuxClient, id: number, port: number): Promise<void> {
  await client.opened(id, port);
  client.sendData(id, Buffer.from("still"));
  assert.equal(String(await said(client, id, 5)), "still");
}

for (const protocol of ["smux", "yamux"] as const) {
  const tongue = TONGUES[protocol];
  /** Of the nth stream. */
  const idOf = (nth: number): number => (tongue.ids[0] as number) + 2 * nth;
  const [one, two, three, four] = [0, 1, 2, 3].map(idOf) as [number, number, number, number];

  test(
    `${protocol}: one stream behind the other, of every size, stays with the worker`,
    { skip },
    async () => {
      await using server = await openServer();
      await using origin = await openTcpOrigin(echo);
      await using node = await nodeOf(server, protocol);
      const sizes = [1, 1000, 20_000, 70_000, 4 << 20, 3];
      for (const bytes of sizes) await roundTrip(await node.connect(origin.port), bytes);
      assert.equal(server.kept.length, sizes.length);
      assert.equal(server.sessions.length, sizes.length);
      await until("they have ended", () => server.ended.length === sizes.length);
      assert.deepEqual(
        server.ended.map(({ upload }) => upload),
        sizes,
      );
    },
  );

  test(`${protocol}: many streams of one session, all at once`, { skip }, async () => {
    await using server = await openServer();
    await using origin = await openTcpOrigin(echo);
    const client = await framesTo(server, protocol);
    const sent = Array.from({ length: 20 }, (_, at) => randomBytes(50_000 + at * 1000));
    for (const at of sent.keys()) client.open(idOf(at), origin.port);
    for (let from = 0; from < 80_000; from += 10_000)
      for (const [at, bytes] of sent.entries()) {
        const piece = bytes.subarray(from, from + 10_000);
        if (piece.length > 0) client.sendData(idOf(at), piece);
      }
    for (const [at, bytes] of sent.entries())
      assert.ok((await said(client, idOf(at), bytes.length)).equals(bytes), `stream ${at}`);
    client.socket.destroy();
    await until("they have ended", () => server.ended.length === sent.length);
    assert.equal(server.kept.length, sent.length);
  });

  test(
    `${protocol}: ends from either side, in either order, and what comes with them`,
    { skip },
    async () => {
      let latest: Socket | null = null;
      await using origin = await openTcpOrigin((socket) => (latest = socket));
      await using server = await openServer();
      const client = await framesTo(server, protocol);
      const opened = async (id: number): Promise<Socket> => {
        latest = null;
        await client.opened(id, origin.port);
        await until("it is accepted", () => latest !== null);
        return latest as unknown as Socket;
      };
      const first = await opened(one);
      client.sendData(one, Buffer.from("said, and over"));
      client.end(one);
      assert.equal(String(await readAll(first)), "said, and over");
      first.end("an answer");
      assert.equal(String(await said(client, one, 9)), "an answer");
      await client.expect(`end ${one}`);
      const second = await opened(two);
      second.end("the last words");
      await client.expect(`end ${two}`);
      assert.equal(String(await said(client, two, 14)), "the last words");
      client.sendData(two, Buffer.from("bye"));
      client.end(two);
      assert.equal(String(await readAll(second)), "bye");
      const third = await opened(three);
      third.write("some");
      await said(client, three, 4);
      third.resetAndDestroy();
      await client.expect(`${protocol === "smux" ? "end" : "reset"} ${three}`);
      await until("they have ended", () => server.ended.length === 3);
      const fifth = await opened(four);
      const failed = outcome(fifth);
      client.socket.destroy();
      assert.equal(await failed, "ECONNRESET");
    },
  );

  test(`${protocol}: a stream that says all at once, with its end`, { skip }, async () => {
    const got = Promise.withResolvers<Buffer>();
    await using origin = await openTcpOrigin((socket) => got.resolve(readAll(socket)));
    await using server = await openServer();
    const client = await framesTo(server, protocol);
    const request = requestFor(origin.port);
    const bytes = randomBytes(20_000);
    const all = Buffer.concat([request, bytes]);
    client.send(tongue.open(one), tongue.head(one, all.length), all, tongue.end(one));
    assert.ok((await got.promise).equals(bytes));
    client.socket.destroy();
  });

  test(`${protocol}: torn frames, and streams that are none`, { skip }, async () => {
    await using server = await openServer();
    await using origin = await openTcpOrigin(echo);
    const client = await framesTo(server, protocol);
    client.sendData(idOf(40), Buffer.from("of none"));
    client.end(idOf(41));
    const sent = randomBytes(3000);
    const request = requestFor(origin.port);
    const bytes = Buffer.concat([
      tongue.open(one),
      tongue.head(one, 3),
      request.subarray(0, 3),
      tongue.head(one, request.length - 3),
      request.subarray(3),
      tongue.head(one, 1000),
      sent.subarray(0, 1000),
      tongue.head(one, 0),
      tongue.head(one, 2000),
      sent.subarray(1000),
    ]);
    for (const byte of bytes.subarray(0, 1400)) client.send(Buffer.of(byte));
    client.send(bytes.subarray(1400));
    assert.ok((await said(client, one, 3000)).equals(sent));
    client.socket.destroy();
  });

  test(
    `${protocol}: a slow reader behind the server is waited for, and loses nothing`,
    { skip },
    async () => {
      const accepted = Promise.withResolvers<Socket>();
      await using slow = await openTcpOrigin((socket) => accepted.resolve(socket.pause()));
      await using origin = await openTcpOrigin(echo);
      await using server = await openServer();
      await using node = await nodeOf(server, protocol);
      const stream = await node.connect(slow.port);
      const bytes = randomBytes(40 << 20);
      stream.resume().end(bytes);
      const far = await accepted.promise;
      await untilHeldUp(() => bytes.length - stream.writableLength);
      assert.ok(stream.writableLength > 8 << 20);
      if (protocol === "yamux")
        for (const size of [1, 300_000]) await roundTrip(await node.connect(origin.port), size);
      far.resume();
      assert.ok((await readAll(far)).equals(bytes));
    },
  );

  test(`${protocol}: a slow client holds back what an origin says`, { skip }, async () => {
    const { on, sent } = source(40 << 20);
    await using origin = await openTcpOrigin(on);
    await using server = await openServer();
    await using node = await nodeOf(server, protocol);
    const stream = await node.connect(origin.port);
    await untilHeldUp(sent);
    assert.ok(sent() < 36 << 20);
    assert.equal((await readAll(stream)).length, 40 << 20);
  });

  test(
    `${protocol}: a removed user loses the session and its streams at once, others keep theirs`,
    { skip },
    async () => {
      await using origin = await openTcpOrigin(echo);
      await using server = await openServer();
      const client = await framesTo(server, protocol);
      const bob = await framesTo(server, protocol, "other");
      for (const each of [client, bob]) await each.opened(one, origin.port);
      const idle = await framesTo(server, protocol);
      await idle.opened(one, origin.port);
      idle.end(one);
      await until("it has no stream", () => server.ended.length === 1);
      const gone = [outcome(client.socket), outcome(idle.socket)];
      server.inbound.replaceUsers([{ id: "bob", credential: "other", flow: null }]);
      assert.deepEqual(await Promise.all(gone), ["ECONNRESET", "ECONNRESET"]);
      await until("they have ended", () => server.ended.length === 2);
      await goesOn(bob, two, origin.port);
      bob.socket.destroy();
    },
  );

  test(`${protocol}: a listener that stops accepting keeps its sessions`, { skip }, async () => {
    await using origin = await openTcpOrigin(echo);
    await using server = await openServer();
    const client = await framesTo(server, protocol);
    await client.opened(one, origin.port);
    await server.stopAccepting();
    await goesOn(client, two, origin.port);
    client.socket.destroy();
  });

  test(`${protocol}: streams that the event loop serves, beside those of the worker`, { skip }, async () => {
    await using origin = await openTcpOrigin(echo);
    await using server = await openServer();
    const client = await framesTo(server, protocol);
    await client.opened(one, origin.port);
    server.instead = (session) => {
      session.reply(null);
      session.stream.on("error", () => {}).pipe(session.stream);
    };
    await client.opened(two, origin.port);
    const sent = randomBytes(200_000); // within the window of a client that grants nothing
    for (const id of [one, two]) client.sendData(id, sent);
    for (const id of [one, two]) assert.ok((await said(client, id, sent.length)).equals(sent));
    server.instead = (session) => session.reply(new DialError("refused", "it is closed"));
    client.open(three, origin.port);
    assert.deepEqual(await client.got(three, 9), Buffer.from("\u0001\u0007refused"));
    await client.expect(`end ${three}`);
    client.end(two);
    await client.expect(`end ${two}`);
    server.instead = null;
    await goesOn(client, four, origin.port);
    client.socket.destroy();
  });

  test(
    `${protocol}: a bulk stream that the event loop has begun goes to a worker, and the session stays`,
    { skip },
    async () => {
      await using origin = await openTcpOrigin(echo);
      await using server = await openServer();
      const relayed = { upload: 0, download: 0 };
      const isOver = Promise.withResolvers<void>();
      server.instead = (session) => {
        const { signal } = new AbortController();
        const { port } = session.metadata.destination;
        const far = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
        session.reply(null);
        const onBytes = (direction: Direction, bytes: number): void => void (relayed[direction] += bytes);
        const times = { timers: new IdleTimers(), idleMs: Infinity, halfClosedIdleMs: Infinity };
        const options = { backend: server.engine, signal, onBytes, ...times };
        isOver.resolve(once(far, "connect").then(() => relay(session.stream, far, unlimited, options)));
      };
      const client = await framesTo(server, protocol);
      const sent = randomBytes(900_000);
      const half = sent.length / 4;
      await client.opened(one, origin.port);
      client.sendData(one, sent.subarray(0, half));
      assert.ok((await said(client, one, half)).equals(sent.subarray(0, half)));
      client.end(one);
      await isOver.promise;
      assert.deepEqual(relayed, { upload: half, download: half });
      server.instead = null;
      await goesOn(client, two, origin.port);
      client.socket.destroy();
    },
  );

  test(
    `${protocol}: a destination that cannot be reached is told, and the session goes on`,
    { skip },
    async () => {
      const closed = await openTcpOrigin(echo);
      await closed[Symbol.asyncDispose]();
      await using origin = await openTcpOrigin(echo);
      await using server = await openServer();
      const client = await framesTo(server, protocol);
      client.open(one, closed.port);
      await until("it has failed", () => server.failures.length === 1);
      server.sessions[0]?.reply(server.failures[0] ?? null);
      assert.deepEqual(await client.got(one, 9), Buffer.from("\u0001\u0007refused"));
      await client.expect(`end ${one}`);
      await goesOn(client, two, origin.port);
      client.socket.destroy();
    },
  );

  test(
    `${protocol}: a worker that dies takes its sessions along, and what the event loop served of them`,
    { skip },
    async () => {
      using killer = new WorkerKiller();
      await using origin = await openTcpOrigin(echo);
      await using server = await openServer();
      const client = await framesTo(server, protocol);
      await client.opened(one, origin.port);
      const taken = Promise.withResolvers<string | null>();
      server.instead = (session) => {
        session.reply(null);
        taken.resolve(outcome(session.stream.resume()));
      };
      await client.opened(two, origin.port);
      const gone = outcome(client.socket);
      await killer.kill("relay");
      await gone;
      await until("its stream has ended", () => server.ended.length === 1);
      await taken.promise;
    },
  );
}

for (const readsOn of [false, true])
  test(
    `smux: what a client has left behind is fetched for a second more, or as long as it reads on: ${readsOn}`,
    { skip },
    async () => {
      const closed = Promise.withResolvers<"closed">();
      await using origin = await openTcpOrigin((socket) => {
        const timer = setInterval(() => socket.write("tick"), 20);
        socket
          .on("error", () => {})
          .on("close", () => {
            clearInterval(timer);
            closed.resolve("closed");
          });
      });
      await using server = await openServer();
      const client = await framesTo(server, "smux");
      await client.opened(3, origin.port);
      await said(client, 3, 4);
      client.send(readsOn ? encodeHalfEnd(3) : encodeEnd(3));
      if (readsOn) assert.equal(await Promise.race([closed.promise, delay(2500)]), undefined);
      else await closed.promise;
      client.socket.destroy();
      await closed.promise;
    },
  );
