/** Sessions of AnyTLS nodes that workers open by themselves, and use for one stream after the other. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { toDestination } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { parseScheme } from "#protocols/anytls/padding.ts";
import * as wire from "#protocols/anytls/wire.ts";
import { outcome } from "../support/client.ts";
import { hashOf } from "../support/connections.ts";
import type { RawClient } from "../support/raw-client.ts";
import { openSessionNode, type ServedSession, type SessionNode } from "../support/session-node.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const skip = process.platform === "linux" ? false : "SKIP sessions of workers: needs Linux";
const TARGET = encodeSocksAddress(toDestination("127.0.0.1", 9));
const WAYS = [{}, { "client-fingerprint": "chrome" }];
const named = (way: object): string => Object.values(way).join("") || "the library";
const fin = (id: number): Buffer => wire.encodeFrame(wire.FIN, id);
const ack = (id: number, problem = ""): Buffer => wire.encodeFrame(wire.SYNACK, id, Buffer.from(problem));
/** Writes of a session that are not padded any more. */
const UNPADDED = { scheme: Uint8Array.from(Buffer.from("stop=1\n0=30-30")) };

/** A client says "ping", and its stream is opened in the session and answered by "pong". */
async function exchange(node: SessionNode, session: ServedSession | number, id: number): Promise<RawClient> {
  const client = await node.dial();
  client.send(Buffer.from("ping"));
  const own = typeof session === "number" ? await node.session(session) : session;
  await own.expect(wire.SYN, id);
  assert.equal(String((await own.untilGot(id, TARGET.length + 4)).subarray(TARGET.length)), "ping");
  own.send(ack(id), wire.encodeData(id, Buffer.from("pong")));
  assert.equal(String(await client.read(4)), "pong");
  return client;
}

for (const way of WAYS) {
  test(
    `${named(way)}: a session serves one stream after the other, whichever side ends them`,
    { skip },
    async () => {
      await using node = await openSessionNode({}, way);
      const first = await exchange(node, 1, 1);
      const session = await node.session(1);
      assert.equal(session.settings.get("client"), "test/1");
      session.send(wire.encodeData(1, Buffer.from("last")), fin(1));
      assert.equal(String(await first.rest()), "last");
      first.socket.end();
      const second = await exchange(node, session, 2);
      second.send(Buffer.from("over"));
      second.socket.end();
      await session.expect(wire.FIN, 2);
      assert.equal(String(session.got(2).subarray(-4)), "over");
      assert.equal(String(await second.rest()), "");
      const third = await exchange(node, session, 3);
      third.socket.resetAndDestroy();
      await session.expect(wire.FIN, 3);
      const fourth = await exchange(node, session, 4);
      session.send(fin(4));
      await fourth.rest();
      await until("a client that does not end is ended", () => node.engine.served.length === 4);
      assert.equal(node.sessions.length, 1);
      assert.deepEqual(
        node.engine.served.map(({ uploadBytes, downloadBytes }) => [uploadBytes, downloadBytes]),
        [
          [4, 8],
          [8, 4],
          [4, 4],
          [4, 4],
        ],
      );
      assert.equal(node.engine.handedOver + node.engine.asked.length, 0);
    },
  );

  test(
    `${named(way)}: two streams at a time are two sessions, of which the younger is used first`,
    { skip },
    async () => {
      await using node = await openSessionNode({}, way);
      const clients = [await exchange(node, 1, 1), await exchange(node, 2, 1)];
      const [older, younger] = node.sessions as [ServedSession, ServedSession];
      younger.send(fin(1));
      await clients[1]?.rest();
      older.send(fin(1));
      await clients[0]?.rest();
      for (const client of clients) client.socket.end();
      await until("both are idle", () => node.engine.served.length === 2);
      const next = await exchange(node, younger, 2);
      next.socket.resetAndDestroy();
      await younger.expect(wire.FIN, 2);
    },
  );

  test(
    `${named(way)}: what is said in a session that died unanswered is said in another one`,
    { skip },
    async () => {
      await using node = await openSessionNode({}, way);
      const first = await exchange(node, 1, 1);
      const session = await node.session(1);
      session.send(fin(1));
      await first.rest();
      first.socket.end();
      const second = await node.dial();
      second.send(Buffer.from("one"));
      await session.expect(wire.SYN, 2);
      await session.untilGot(2, TARGET.length + 3);
      second.send(Buffer.from("two"));
      await session.untilGot(2, TARGET.length + 6);
      session.socket.destroy();
      const other = await node.session(2);
      await other.expect(wire.SYN, 1);
      assert.equal(String((await other.untilGot(1, TARGET.length + 6)).subarray(TARGET.length)), "onetwo");
      other.send(ack(1), wire.encodeData(1, Buffer.from("found")));
      assert.equal(String(await second.read(5)), "found");
      second.send(Buffer.from("three"));
      await other.untilGot(1, TARGET.length + 11);
      second.socket.destroy();
      await other.expect(wire.FIN, 1);
    },
  );
}

test("a session whose server is silent on a stream is given up for another one", { skip }, async () => {
  await using node = await openSessionNode();
  const first = await exchange(node, 1, 1);
  const session = await node.session(1);
  session.send(fin(1));
  await first.rest();
  const second = await node.dial();
  second.send(Buffer.from("heard?"));
  await session.expect(wire.SYN, 2);
  const other = await node.session(2);
  await other.expect(wire.SYN, 1);
  await other.untilGot(1, TARGET.length + 6);
  other.send(ack(1), wire.encodeData(1, Buffer.from("yes")));
  assert.equal(String(await second.read(3)), "yes");
});

test(
  "a client that says nothing has its stream opened, and hears what its server says first",
  { skip },
  async () => {
    await using node = await openSessionNode();
    for (const id of [1, 2]) {
      const client = await node.dial();
      const session = await node.session(1);
      await session.expect(wire.SYN, id);
      assert.ok((await session.untilGot(id, TARGET.length)).equals(TARGET));
      session.send(ack(id), wire.encodeData(id, Buffer.from("220 hello")));
      assert.equal(String(await client.read(9)), "220 hello");
      session.send(fin(id));
      await client.rest();
      client.socket.end();
      await until("it is idle", () => node.engine.served.length === id);
    }
  },
);

test("a client that ends at once without a byte has its stream ended, too", { skip }, async () => {
  await using node = await openSessionNode(UNPADDED);
  const first = await exchange(node, 1, 1);
  const session = await node.session(1);
  session.send(fin(1));
  await first.rest();
  first.socket.end();
  await until("it is idle", () => node.engine.served.length === 1);
  const second = await node.dial();
  second.socket.end();
  await session.expect(wire.SYN, 2);
  await session.expect(wire.FIN, 2); // nothing else happens to its socket until then
  assert.equal(String(await second.rest()), "");
  await until("it is over", () => node.engine.served.length === 2);
});

test(
  "the first writes are padded, and then a stream is opened in one record with its first data",
  { skip },
  async () => {
    await using node = await openSessionNode();
    for (let id = 1; id < 5; id++) {
      const client = await exchange(node, 1, id);
      const session = await node.session(1);
      client.socket.resetAndDestroy();
      await session.expect(wire.FIN, id);
    }
    const { records } = await node.session(1);
    const inRange = (from: number, ...ranges: readonly [number, number][]): void => {
      const sizes = records.slice(from, from + ranges.length);
      for (const [at, [low, high]] of ranges.entries())
        assert.ok((sizes[at] ?? 0) >= low && (sizes[at] ?? 0) < high, sizes.join());
    };
    assert.equal(records[0], 64);
    const PADDED = 1000 + 7; // where all of it is padding, its header comes on top
    // What opens the first stream, its data and its end; what opens the second one, in two writes, its data and its end.
    inRange(
      1,
      [100, 400],
      [400, 500],
      [7, 8],
      [500, PADDED],
      [500, PADDED],
      [500, PADDED],
      [500, PADDED],
      [500, PADDED],
    );
    const opened = 7 + 7 + TARGET.length + 7 + 4;
    assert.deepEqual(records.slice(9), [opened, 7, opened, 7]);
  },
);

test("a server that cannot dial ends its stream alone", { skip }, async () => {
  await using node = await openSessionNode();
  const client = await node.dial();
  const session = await node.session(1);
  await session.expect(wire.SYN, 1);
  const reset = outcome(client.socket);
  session.send(ack(1, "refused"));
  assert.equal(await reset, "ECONNRESET");
  await session.expect(wire.FIN, 1);
  const next = await exchange(node, session, 2);
  next.socket.destroy();
});

test(
  "an idle session answers, takes a scheme for the next ones, and ends with an alert",
  { skip },
  async () => {
    await using node = await openSessionNode(UNPADDED);
    const client = await exchange(node, 1, 1);
    const session = await node.session(1);
    const scheme = parseScheme(Buffer.from("stop=2\n0=40-40\n1=900-900"));
    session.send(wire.encodeFrame(wire.HEARTBEAT_REQUEST, 7), wire.encodeWaste(300));
    await session.expect(wire.HEARTBEAT_RESPONSE, 7);
    session.send(fin(1));
    await client.rest();
    client.socket.end();
    await until("it is idle", () => node.engine.served.length === 1);
    session.send(wire.encodeFrame(wire.HEARTBEAT_REQUEST, 8), wire.encodeData(1, Buffer.from("late")));
    await session.expect(wire.HEARTBEAT_RESPONSE, 8);
    session.send(wire.encodeFrame(wire.UPDATE_SCHEME, 0, Buffer.from("nonsense")));
    session.send(wire.encodeFrame(wire.UPDATE_SCHEME, 0, scheme.raw));
    const huge = Buffer.from("stop=2\n1=30000-30000,30000-30000"); // a write of a worker's may not grow so much
    session.send(wire.encodeFrame(wire.UPDATE_SCHEME, 0, huge));
    session.send(wire.encodeFrame(wire.ALERT, 0, Buffer.from("go away")));
    await once(session.socket, "end");
    const next = await exchange(node, 2, 1);
    const other = await node.session(2);
    assert.equal(other.settings.get("padding-md5"), scheme.md5);
    assert.deepEqual(other.records.slice(0, 2), [34 + 40, 900]);
    next.socket.destroy();
  },
);

test(
  "idle sessions are closed in time, but for so many of the youngest, and all with their node",
  { skip },
  async () => {
    await using node = await openSessionNode({ checkIntervalMs: 100, timeoutMs: 50, minIdle: 1 });
    const clients = [await exchange(node, 1, 1), await exchange(node, 2, 1)];
    const [older, younger] = node.sessions as [ServedSession, ServedSession];
    const ended = [older, younger].map(({ socket }) => once(socket, "end"));
    for (const client of clients) client.socket.resetAndDestroy();
    await Promise.all([older.expect(wire.FIN, 1), younger.expect(wire.FIN, 1)]);
    await ended[0];
    const again = await exchange(node, younger, 2);
    node.remove();
    assert.equal(younger.socket.readableEnded, false);
    again.socket.resetAndDestroy();
    await younger.expect(wire.FIN, 2);
    await ended[1];
  },
);

test("a client that has ended, and reads slowly, has all of its answer", { skip }, async () => {
  await using node = await openSessionNode();
  const client = await exchange(node, 1, 1);
  const session = await node.session(1);
  const answer = randomBytes(24_000_000);
  client.socket.pause();
  client.socket.end();
  for (let from = 0; from < answer.length; from += 60_000)
    session.send(wire.encodeData(1, answer.subarray(from, from + 60_000)));
  await delay(1_500); // longer than an end is held back
  client.socket.resume();
  session.send(fin(1));
  const got = await client.rest();
  assert.equal(got.length, answer.length);
  assert.equal(hashOf(got), hashOf(answer));
});

test("with disable-reuse a session ends with its stream", { skip }, async () => {
  await using node = await openSessionNode({ reuses: false });
  for (const count of [1, 2]) {
    const client = await exchange(node, count, 1);
    const session = await node.session(count);
    const ended = once(session.socket, "end");
    session.send(fin(1));
    await client.rest();
    await ended;
  }
});

test("bulk both ways at once, through frames of any size and a client that pauses", { skip }, async () => {
  await using node = await openSessionNode();
  const client = await exchange(node, 1, 1);
  const session = await node.session(1);
  const [down, up] = [randomBytes(9_000_000), randomBytes(7_000_000)];
  client.send(up);
  for (let from = 0, size = 1; from < down.length; from += size, size = (size * 7 + 3) % 200_000)
    session.send(wire.encodeData(1, down.subarray(from, from + size)), wire.encodeWaste(size % 50));
  client.socket.pause();
  const got = await session.untilGot(1, TARGET.length + 4 + up.length);
  assert.equal(hashOf(got.subarray(TARGET.length + 4)), hashOf(up));
  client.socket.resume();
  assert.equal(hashOf(await client.read(down.length)), hashOf(down));
  client.socket.destroy();
  await session.expect(wire.FIN, 1);
});

test("a worker that dies leaves no session behind, idle or in use", { skip }, async () => {
  using killer = new WorkerKiller();
  await using node = await openSessionNode();
  const clients = [await exchange(node, 1, 1), await exchange(node, 2, 1)];
  const closed = node.sessions.map(
    ({ socket }) => new Promise((resolve) => socket.once("end", resolve).once("close", resolve)),
  );
  node.sessions[0]?.send(fin(1));
  await clients[0]?.rest();
  clients[0]?.socket.end();
  await until("one is idle", () => node.engine.served.length === 1);
  await killer.kill("relay");
  await Promise.all(closed);
});
