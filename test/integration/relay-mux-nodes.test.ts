/** Connections that the streams of a node share, and that workers open by themselves. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { toDestination } from "#net/address/ip.ts";
import { encodeStreamRequest } from "#transport/mux/request.ts";
import * as yamux from "#transport/mux/yamux-frame.ts";
import { outcome } from "../support/client.ts";
import { hashOf } from "../support/connections.ts";
import { type MuxFrames, TONGUES } from "../support/mux-frames.ts";
import { type MuxNode, openMuxNode } from "../support/mux-node.ts";
import type { RawClient } from "../support/raw-client.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const skip = process.platform === "linux" ? false : "SKIP shared connections of workers: needs Linux";
const REQUEST = encodeStreamRequest({ kind: "stream", destination: toDestination("127.0.0.1", 9) });
const OK = Buffer.of(0);
const PROTOCOLS = ["smux", "yamux"] as const;

/** A client says "ping", and its stream is opened in the session and answered by "pong". */
async function exchange(node: MuxNode, session: MuxFrames | number, id: number): Promise<RawClient> {
  const client = await node.dial();
  client.send("ping");
  const own = typeof session === "number" ? await node.session(session) : session;
  await own.expect(`open ${id}`);
  const got = await own.got(id, REQUEST.length + 4);
  assert.deepEqual(got, Buffer.concat([REQUEST, Buffer.from("ping")]));
  own.sendData(id, Buffer.concat([OK, Buffer.from("pong")]));
  assert.equal(String(await client.read(4)), "pong");
  return client;
}

const sums = (node: MuxNode) =>
  node.engine.served.map(({ uploadBytes, downloadBytes }) => `${uploadBytes}/${downloadBytes}`).toSorted();

for (const protocol of PROTOCOLS) {
  const [one, two, three] = TONGUES[protocol].ids as [number, number, number];
  /** How the peer hears that a stream is given up. */
  const leaves = protocol === "smux" ? "end" : "reset";

  test(
    `${protocol}: what is new goes by another connection than one that says nothing`,
    { skip },
    async () => {
      await using node = await openMuxNode(protocol);
      await exchange(node, 1, one);
      const silent = await node.dial();
      silent.send("is anybody there?");
      await (await node.session(1)).expect(`open ${two}`);
      await delay(5_100);
      await exchange(node, 2, one);
    },
  );

  test(`${protocol}: streams share a connection, and end one by one`, { skip }, async () => {
    await using node = await openMuxNode(protocol);
    const first = await exchange(node, 1, one);
    const session = await node.session(1);
    const second = await exchange(node, session, two);
    session.sendData(one, Buffer.from("last"));
    session.end(one);
    assert.equal(String(await first.rest()), "last");
    first.send("behind");
    first.socket.end();
    await session.expect(`end ${one}`);
    assert.equal(session.size(one), REQUEST.length + 4 + 6);
    second.socket.end();
    await session.expect(`end ${two}`);
    session.sendData(two, Buffer.from("an answer"));
    session.end(two);
    assert.equal(String(await second.rest()), "an answer");
    const third = await exchange(node, session, three);
    third.socket.resetAndDestroy();
    await session.expect(`${leaves} ${three}`);
    await until("all have been reported", () => node.engine.served.length === 3);
    assert.equal(node.sessions.length, 1);
    assert.deepEqual(sums(node), ["10/8", "4/13", "4/4"]);
    assert.equal(node.engine.handedOver + node.engine.asked.length, 0);
  });

  test(`${protocol}: a client that says nothing has its stream opened, and ended`, { skip }, async () => {
    await using node = await openMuxNode(protocol);
    for (const id of [one, two]) {
      const client = await node.dial();
      client.socket.end();
      const session = await node.session(1);
      await session.expect(`open ${id}`);
      assert.deepEqual(await session.got(id, REQUEST.length), REQUEST);
      await session.expect(`end ${id}`);
      session.sendData(id, Buffer.concat([OK, Buffer.from("220 hello")]));
      session.end(id);
      assert.equal(String(await client.rest()), "220 hello");
    }
  });

  test(`${protocol}: connections and streams are as many as the node has them`, { skip }, async () => {
    const rows = [
      [{}, 9, 2], // eight in one
      [{ maxStreams: 2 }, 5, 3],
      [{ maxConnections: 2 }, 5, 2],
      [{ maxConnections: 3, minStreams: 2 }, 4, 2],
    ] as const;
    for (const [bounds, count, connections] of rows) {
      await using node = await openMuxNode(protocol, bounds);
      const clients: RawClient[] = [];
      for (let at = 0; at < count; at++) {
        const client = await node.dial();
        client.send("ping");
        clients.push(client);
        const heard = () => node.sessions.reduce((sum, session) => sum + heardOf(session, protocol), 0);
        await until("its stream is open", () => heard() === at + 1);
      }
      assert.equal(node.sessions.length, connections, JSON.stringify(bounds));
      for (const client of clients) client.socket.destroy();
    }
  });

  test(`${protocol}: a server that cannot dial ends its stream alone`, { skip }, async () => {
    await using node = await openMuxNode(protocol);
    const kept = await exchange(node, 1, one);
    const session = await node.session(1);
    const client = await node.dial();
    client.send("ping");
    await session.expect(`open ${two}`);
    const reset = outcome(client.socket);
    const text = Buffer.from("it is closed");
    session.sendData(two, Buffer.concat([Buffer.of(1, text.length), text]));
    assert.equal(await reset, "ECONNRESET");
    await session.expect(`${leaves} ${two}`);
    session.sendData(one, Buffer.from("here"));
    assert.equal(String(await kept.read(4)), "here");
  });

  test(
    `${protocol}: a connection that dies takes its streams, and the next one is another`,
    { skip },
    async () => {
      await using node = await openMuxNode(protocol);
      const clients = [await exchange(node, 1, one), await exchange(node, 1, two)];
      const session = await node.session(1);
      const ends = clients.map(({ socket }) => outcome(socket));
      session.sendData(one, randomBytes(1000));
      await clients[0]?.read(1000);
      session.socket.destroy();
      assert.deepEqual(await Promise.all(ends), ["ECONNRESET", "ECONNRESET"]);
      await until("both have been reported", () => node.engine.served.length === 2);
      assert.deepEqual(sums(node), ["4/1004", "4/4"]);
      (await exchange(node, 2, one)).socket.resetAndDestroy();
      const other = await node.session(2);
      await other.expect(`${leaves} ${one}`);
      other.socket.destroy(); // while it is idle
      await until("it is seen", () => other.socket.closed);
      (await exchange(node, 3, one)).socket.destroy();
      assert.equal(node.engine.handedOver + node.engine.asked.length, 0);
    },
  );

  test(
    `${protocol}: with its node an idle connection ends, and a busy one with its last stream`,
    { skip },
    async () => {
      await using node = await openMuxNode(protocol, { maxStreams: 1 });
      const clients = [await exchange(node, 1, one), await exchange(node, 2, one)];
      const [idle, busy] = node.sessions as [MuxFrames, MuxFrames];
      const ended = [idle, busy].map(({ socket }) => once(socket, "end"));
      clients[0]?.socket.resetAndDestroy();
      await idle.expect(`${leaves} ${one}`);
      node.remove();
      await ended[0];
      busy.sendData(one, Buffer.from("still"));
      assert.equal(String(await clients[1]?.read(5)), "still");
      assert.equal(busy.socket.readableEnded, false);
      const upload = randomBytes(3_000_000);
      busy.socket.pause();
      clients[1]?.send(upload);
      if (protocol === "yamux") busy.send(yamux.encodeHead(yamux.WINDOW_UPDATE, 0, one, upload.length));
      busy.end(one);
      clients[1]?.socket.end();
      await delay(100);
      busy.socket.resume();
      busy.send(TONGUES[protocol].end(99)); // it is not closed with this unread
      const got = await busy.got(one, REQUEST.length + 4 + upload.length);
      assert.equal(hashOf(got.subarray(REQUEST.length + 4)), hashOf(upload));
      await ended[1];
    },
  );

  test(
    `${protocol}: bulk both ways at once, in frames of any size, and a client that pauses`,
    { skip },
    async () => {
      await using node = await openMuxNode(protocol);
      const clients = [await exchange(node, 1, one), await exchange(node, 1, two)];
      const session = await node.session(1);
      const ids = [one, two];
      const down = ids.map(() => randomBytes(900_000));
      const up = ids.map(() => randomBytes(3_000_000));
      for (const [at, client] of clients.entries()) {
        client.socket.pause();
        client.send(up[at] as Buffer);
        if (protocol === "yamux")
          session.send(yamux.encodeHead(yamux.WINDOW_UPDATE, 0, ids[at] as number, 3_000_000));
      }
      for (let from = 0, size = 1; from < 900_000; from += size, size = (size * 7 + 3) % 60_000)
        for (const [at, id] of ids.entries())
          session.sendData(id, (down[at] as Buffer).subarray(from, from + size), 60_000);
      for (const [at, id] of ids.entries()) {
        const got = await session.got(id, REQUEST.length + 4 + 3_000_000);
        assert.equal(hashOf(got.subarray(REQUEST.length + 4)), hashOf(up[at] as Buffer));
      }
      for (const [at, client] of clients.entries()) {
        client.socket.resume();
        assert.equal(hashOf(await client.read(900_000)), hashOf(down[at] as Buffer));
        client.socket.resetAndDestroy();
      }
      await until("both have been reported", () => node.engine.served.length === 2);
      assert.deepEqual(sums(node), ["3000004/900004", "3000004/900004"]);
    },
  );

  test(`${protocol}: uploads take turns where the server is slow`, { skip }, async () => {
    await using node = await openMuxNode(protocol);
    const clients = [await exchange(node, 1, one), await exchange(node, 1, two)];
    const session = await node.session(1);
    const ids = [one, two];
    const size = 24_000_000;
    session.socket.pause();
    for (const [at, client] of clients.entries()) {
      client.send(Buffer.alloc(size, at));
      if (protocol === "yamux")
        session.send(yamux.encodeHead(yamux.WINDOW_UPDATE, 0, ids[at] as number, size));
    }
    await delay(300);
    session.socket.resume();
    for (const [at, id] of ids.entries()) {
      await session.got(id, size);
      const other = session.size(ids[1 - at] as number);
      assert.ok(other > size / 4, `${other} of the other one`);
    }
    for (const client of clients) client.socket.destroy();
  });

  test(`${protocol}: a slow reader holds no other up, and loses nothing`, { skip }, async () => {
    await using node = await openMuxNode(protocol);
    const slow = await exchange(node, 1, one);
    const session = await node.session(1);
    const quick = await exchange(node, session, two);
    slow.socket.pause();
    const mayBeSent = protocol === "yamux" ? yamux.OUR_WINDOW - 5 : 6_000_000;
    const answer = randomBytes(9_000_000);
    session.sendData(one, answer.subarray(0, mayBeSent));
    session.sendData(two, Buffer.from("at once"));
    assert.equal(String(await quick.read(7)), "at once");
    (await exchange(node, session, three)).socket.destroy();
    slow.socket.end();
    await delay(1_500); // longer than an end is held back
    slow.socket.resume();
    await sendAsGranted(session, one, answer, mayBeSent, protocol);
    session.end(one);
    assert.equal(hashOf(await slow.rest()), hashOf(answer));
    await session.expect(`end ${one}`);
  });

  test(`${protocol}: a worker that dies leaves no connection behind`, { skip }, async () => {
    using killer = new WorkerKiller();
    await using node = await openMuxNode(protocol, { maxStreams: 1 });
    const clients = [await exchange(node, 1, one), await exchange(node, 2, one)];
    const closed = node.sessions.map(
      ({ socket }) => new Promise((resolve) => socket.once("end", resolve).once("close", resolve)),
    );
    clients[0]?.socket.resetAndDestroy();
    await (node.sessions[0] as MuxFrames).expect(`${leaves} ${one}`);
    const end = outcome((clients[1] as RawClient).socket);
    await killer.kill("relay");
    await Promise.all(closed);
    assert.notEqual(await end, "");
  });

  test(`${protocol}: what is said of streams that are not there means nothing`, { skip }, async () => {
    await using node = await openMuxNode(protocol);
    const client = await exchange(node, 1, one);
    const session = await node.session(1);
    const gone = await exchange(node, session, two);
    gone.socket.resetAndDestroy();
    await session.expect(`${leaves} ${two}`);
    for (const id of [two, 0, 1001, 0xffff_ffff]) {
      session.sendData(id, randomBytes(50_000));
      session.end(id);
    }
    session.sendData(one, Buffer.from("here"));
    assert.equal(String(await client.read(4)), "here");
    (await exchange(node, session, three)).socket.destroy();
  });
}

test("smux: whenever a client ends, its stream ends, too", { skip }, async () => {
  await using node = await openMuxNode("smux", { maxStreams: 1_000 });
  const count = 300;
  const one = async (at: number): Promise<void> => {
    const client = await node.dial();
    client.send("ping");
    await delay(10 + (at % 15)); // about when a silent client's stream would be opened
    client.socket.end();
  };
  for (let at = 0; at < count; at += 30)
    await Promise.all(Array.from({ length: 30 }, (_, index) => one(at + index)));
  const session = await node.session(1);
  for (let at = 0; at < count; at++) {
    await session.expect(`end ${3 + 2 * at}`);
    session.end(3 + 2 * at);
  }
  await until("all are over", () => node.engine.served.length === count);
});

/** Streams that the session has heard of. */
function heardOf(session: MuxFrames, protocol: (typeof PROTOCOLS)[number]): number {
  const ids = Array.from({ length: 16 }, (_, at) => (TONGUES[protocol].ids[0] as number) + 2 * at);
  return ids.filter((id) => session.size(id) > 0).length;
}

/** The rest of it, from so many bytes on, as far as the window allows. */
async function sendAsGranted(
  session: MuxFrames,
  id: number,
  answer: Buffer,
  sent: number,
  protocol: (typeof PROTOCOLS)[number],
): Promise<void> {
  let from = sent;
  while (from < answer.length) {
    const most = protocol === "smux" ? answer.length : yamux.OUR_WINDOW - 5 + session.credit(id);
    session.sendData(id, answer.subarray(from, most));
    from = Math.max(from, Math.min(most, answer.length));
    if (from < answer.length)
      await until("more is granted", () => yamux.OUR_WINDOW - 5 + session.credit(id) > from);
  }
}

const head = (type: number, flags: number, id: number, length: number): Buffer =>
  yamux.encodeHead(type, flags, id, length);
const OPENED = yamux.OUR_WINDOW;
const HOSTILE: readonly (readonly [string, readonly Buffer[]])[] = [
  ["a frame beyond the window", [head(yamux.DATA, 0, 1, OPENED + 1)]],
  ["frames beyond the window", [head(yamux.DATA, 0, 1, 9), Buffer.alloc(9), head(yamux.DATA, 0, 1, OPENED)]],
  ["windows without end", Array.from({ length: 3 }, () => head(yamux.WINDOW_UPDATE, 0, 1, 0x7fff_ffff))],
  ["a stream of the server's own", [head(yamux.WINDOW_UPDATE, yamux.SYN, 2, 0)]],
  ["another version", [Buffer.alloc(12, 1)]],
  ["an unknown frame", [head(9, 0, 0, 0)]],
];

for (const [what, frames] of HOSTILE)
  test(`yamux: ${what} ends the connection, and the next one is another`, { skip }, async () => {
    await using node = await openMuxNode("yamux");
    const clients = [await exchange(node, 1, 1), await exchange(node, 1, 3)];
    const session = await node.session(1);
    const ends = clients.map(({ socket }) => outcome(socket));
    session.send(...frames);
    await session.expect(`away ${yamux.GO_AWAY_PROTOCOL}`);
    assert.deepEqual(await Promise.all(ends), ["ECONNRESET", "ECONNRESET"]);
    (await exchange(node, 2, 1)).socket.destroy();
  });

test("yamux: pings are answered, and a server that goes away lets streams end", { skip }, async () => {
  await using node = await openMuxNode("yamux");
  const client = await exchange(node, 1, 1);
  const session = await node.session(1);
  const ended = once(session.socket, "end");
  session.send(head(yamux.PING, yamux.SYN, 0, 77), head(yamux.GO_AWAY, 0, 0, 0));
  await session.expect("ping 77");
  (await exchange(node, 2, 1)).socket.destroy();
  session.sendData(1, Buffer.from("still"));
  assert.equal(String(await client.read(5)), "still");
  client.socket.end();
  session.end(1);
  await client.rest();
  await ended;
});
