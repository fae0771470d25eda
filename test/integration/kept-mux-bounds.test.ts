/** What a session of smux or yamux that a worker keeps may not do, and what holds for all of them: users, limits, noise. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { test } from "node:test";
import type { StreamSession } from "#core/session.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import * as smux from "#transport/mux/smux-frame.ts";
import * as yamux from "#transport/mux/yamux-frame.ts";
import { outcome, readAll, roundTrip } from "../support/client.ts";
import {
  framesTo,
  greetingOf,
  type MuxClient,
  nodeOf,
  openServer,
  openTls,
  requestFor,
} from "../support/kept-mux.ts";
import { skip } from "../support/kept-sessions.ts";
import { TONGUES } from "../support/mux-frames.ts";
import { echo, openTcpOrigin, untilHeldUp } from "../support/origin.ts";
import { grantingMeter } from "../support/relayed.ts";
import { until } from "../support/until.ts";

const BOB = [{ id: "bob", credential: "other", flow: null }];
/** Of one thread. */
const REQUEST_SLOTS = 1024;
const MOST_STREAMS = 1024;

/** The session goes on. */
async function goesOn(client: MuxClient, id: number, port: number): Promise<void> {
  await client.opened(id, port);
  client.sendData(id, Buffer.from("still"));
  assert.equal(String((await client.got(id, 6)).subarray(1)), "still");
}

for (const protocol of ["smux", "yamux"] as const) {
  const tongue = TONGUES[protocol];
  const idOf = (nth: number): number => (tongue.ids[0] as number) + 2 * nth;
  const [one, two, three] = [0, 1, 2].map(idOf) as [number, number, number];

  test(
    `${protocol}: a limited user moves nothing without leave, and all is counted once`,
    { skip },
    async () => {
      await using server = await openServer();
      await using origin = await openTcpOrigin(echo);
      await using node = await nodeOf(server, protocol);
      const { meter, reserved } = grantingMeter();
      server.meter = meter;
      await roundTrip(await node.connect(origin.port), 300_000);
      await until("it has ended", () => server.ended.length === 1);
      assert.deepEqual(server.ended[0], reserved);
      assert.deepEqual(reserved, { upload: 300_000, download: 300_000 });
    },
  );

  test(
    `${protocol}: a removed user's stream ends at once where its origin does not read`,
    { skip },
    async () => {
      const accepted = Promise.withResolvers<Socket>();
      await using origin = await openTcpOrigin((socket) => accepted.resolve(socket.pause()));
      await using server = await openServer();
      await using node = await nodeOf(server, protocol);
      const stream = await node.connect(origin.port);
      const bytes = randomBytes(40 << 20);
      stream.write(bytes);
      const far = await accepted.promise;
      await untilHeldUp(() => bytes.length - stream.writableLength);
      server.inbound.replaceUsers(BOB);
      await until("it has ended", () => server.ended.length === 1);
      assert.equal(await outcome(far.resume()), "ECONNRESET");
    },
  );

  test(
    `${protocol}: what waits for a reader that has gone with its client is thrown away`,
    { skip },
    async () => {
      const accepted = Promise.withResolvers<Socket>();
      await using origin = await openTcpOrigin((socket) => accepted.resolve(socket.pause()));
      await using other = await openTcpOrigin(echo);
      await using server = await openServer();
      const client = await framesTo(server, protocol);
      await client.opened(one, origin.port);
      client.sendData(one, randomBytes(200_000));
      const far = await accepted.promise;
      if (protocol === "yamux") client.send(tongue.leave(one));
      else client.socket.destroy();
      assert.equal(await outcome(far.resume()), "ECONNRESET");
      if (protocol === "yamux") await goesOn(client, two, other.port);
      client.socket.destroy();
    },
  );

  test(
    `${protocol}: nothing is dialled for a user who is removed while it is decided where to`,
    { skip },
    async () => {
      let accepted = 0;
      await using origin = await openTcpOrigin((socket) => {
        accepted++;
        echo(socket);
      });
      await using server = await openServer();
      const asked: StreamSession[] = [];
      server.instead = (session) => void asked.push(session);
      const client = await framesTo(server, protocol);
      for (const id of [one, two, three]) client.open(id, origin.port);
      await until("they have been asked for", () => asked.length === 3);
      const gone = outcome(client.socket);
      server.inbound.replaceUsers(BOB);
      assert.equal(await gone, "ECONNRESET");
      const [first, second, third] = asked;
      const plan = { ip: LOOPBACK_V4, port: origin.port, routingMark: 0, interfaceName: "", probes: null };
      const worker = first?.offloaded?.worker ?? assert.fail();
      const ended = Promise.withResolvers<void>();
      worker.events = { dialled: assert.fail, failed: () => assert.fail(), ended: ended.resolve };
      worker.dial({ ...plan, timeoutMs: 5_000, isFirstOfMany: false }, Buffer.alloc(0), false);
      await ended.promise;
      assert.equal(second?.stream.destroyed, true);
      third?.reply(new Error("too late"));
      server.instead = null;
      const bob = await framesTo(server, protocol, "other");
      await goesOn(bob, one, origin.port);
      assert.equal(accepted, 1);
      bob.socket.destroy();
    },
  );

  test(`${protocol}: who could not ask before its session ended asks no more`, { skip }, async () => {
    await using server = await openServer();
    await using origin = await openTcpOrigin(echo);
    server.instead = () => {};
    const ann = await framesTo(server, protocol);
    for (let nth = 0; nth < REQUEST_SLOTS - 24; nth++) ann.open(idOf(nth), origin.port);
    await until("they have been asked for", () => server.sessions.length === REQUEST_SLOTS - 24);
    const bob = await framesTo(server, protocol, "other");
    for (let nth = 0; nth < 40; nth++) bob.open(idOf(nth), origin.port);
    await until("all slots are taken", () => server.sessions.length === REQUEST_SLOTS);
    const asked = server.sessions.slice();
    const gone = outcome(bob.socket);
    server.inbound.replaceUsers([{ id: "ann", credential: "letmein", flow: null }]);
    await gone;
    for (const session of asked) session.offloaded?.worker.reset();
    server.instead = null;
    const next = await framesTo(server, protocol);
    await goesOn(next, one, origin.port);
    assert.equal(server.sessions.length, REQUEST_SLOTS + 1);
    for (const { socket } of [ann, next]) socket.destroy();
  });

  test(`${protocol}: a session has so many streams, and one more is refused alone`, { skip }, async () => {
    await using server = await openServer();
    await using origin = await openTcpOrigin(echo);
    const client = await framesTo(server, protocol);
    for (let nth = 0; nth < MOST_STREAMS - 1; nth++) client.send(tongue.open(idOf(nth)));
    await client.opened(idOf(MOST_STREAMS), origin.port);
    client.open(idOf(MOST_STREAMS + 1), origin.port);
    await client.expect(`${protocol === "smux" ? "end" : "reset"} ${idOf(MOST_STREAMS + 1)}`);
    client.send(tongue.leave(one));
    await goesOn(client, idOf(MOST_STREAMS + 2), origin.port);
    assert.equal(server.sessions.length, 2);
    client.socket.destroy();
  });

  test(`${protocol}: a stream that has ended counts until its dial has, too`, { skip }, async () => {
    await using server = await openServer();
    await using origin = await openTcpOrigin(echo);
    server.instead = () => {};
    const client = await framesTo(server, protocol);
    for (let nth = 0; nth < MOST_STREAMS; nth++) {
      client.open(idOf(nth), origin.port);
      client.send(tongue.leave(idOf(nth)));
    }
    await until("they have been asked for", () => server.sessions.length === MOST_STREAMS);
    client.open(idOf(MOST_STREAMS), origin.port);
    await client.expect(`${protocol === "smux" ? "end" : "reset"} ${idOf(MOST_STREAMS)}`);
    server.instead = null;
    server.sessions[0]?.offloaded?.worker.reset();
    let tries = 0;
    await until("there is room", () => {
      const nth = MOST_STREAMS + 1 + tries++;
      client.open(idOf(nth), origin.port);
      return server.sessions.length > MOST_STREAMS;
    });
    client.socket.destroy();
  });
  test(`${protocol}: who asks for no address loses the stream alone`, { skip }, async () => {
    await using server = await openServer();
    await using origin = await openTcpOrigin(echo);
    const client = await framesTo(server, protocol);
    const bad = Buffer.of(0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8);
    client.send(tongue.open(one), tongue.head(one, bad.length), bad);
    client.sendData(one, randomBytes(1000));
    await client.expect(`${protocol === "smux" ? "end" : "reset"} ${one}`);
    client.send(tongue.open(two), tongue.end(two)); // it asks for nothing at all
    await goesOn(client, three, origin.port);
    assert.equal(server.sessions.length, 1);
    client.socket.destroy();
  });

  test(`${protocol}: whatever frames a client makes up, the others are served`, { skip }, async () => {
    await using server = await openServer();
    await using origin = await openTcpOrigin(echo);
    const steady = await framesTo(server, protocol);
    const anyFrame = (): Buffer => {
      const [kind = 0, flags = 0, nth = 0, high = 0, low = 0] = randomBytes(5);
      const bytes = (high << 4) + (low >>> 4);
      const id = idOf(nth % 4);
      const data = nth % 3 === 0 ? requestFor(origin.port) : randomBytes(bytes);
      if (protocol === "smux")
        return Buffer.concat([
          smux.encodeHead(kind % 4, id, kind % 4 === smux.PSH ? data.length : 0),
          kind % 4 === smux.PSH ? data : Buffer.alloc(0),
        ]);
      const isData = kind % 4 === yamux.DATA;
      const head = yamux.encodeHead(kind % 4, flags & 15, id, isData ? data.length : low);
      return Buffer.concat([head, isData ? data : Buffer.alloc(0)]);
    };
    for (let round = 0; round < 30; round++) {
      const socket = await openTls(server);
      socket.resume();
      const noise = round % 3 === 0 ? [randomBytes(20_000)] : Array.from({ length: 60 }, anyFrame);
      socket.write(Buffer.concat([greetingOf(protocol), ...noise]));
      if (round % 2 === 0) socket.end();
      else socket.write(Buffer.concat(noise), () => socket.destroy());
      await goesOn(steady, idOf(round), origin.port);
    }
    steady.socket.destroy();
  });
}

const faults: readonly (readonly [name: string, protocol: "smux" | "yamux", frame: Buffer])[] = [
  ["another version", "smux", Buffer.of(2, 0, 0, 0, 3, 0, 0, 0)],
  ["an unknown command", "smux", Buffer.of(1, 7, 0, 0, 3, 0, 0, 0)],
  ["data of a command without", "smux", Buffer.of(1, 1, 9, 0, 3, 0, 0, 0)],
  ["another version", "yamux", Buffer.from(yamux.encodeHead(0, 0, 1, 0)).fill(3, 0, 1)],
  ["an unknown type", "yamux", yamux.encodeHead(9, 0, 1, 0)],
  ["a server's number", "yamux", yamux.encodeHead(yamux.WINDOW_UPDATE, yamux.SYN, 4, 0)],
  ["a number twice", "yamux", yamux.encodeHead(yamux.WINDOW_UPDATE, yamux.SYN, 1, 0)],
  ["data beyond the window", "yamux", yamux.encodeHead(yamux.DATA, 0, 1, 3 << 20)],
  ["a window without end", "yamux", yamux.encodeHead(yamux.WINDOW_UPDATE, 0, 1, 0xffff_ffff)],
];
for (const [name, protocol, frame] of faults)
  test(`${protocol}: ${name} ends the session with its streams, and no other`, { skip }, async () => {
    const accepted = Promise.withResolvers<Socket>();
    await using server = await openServer();
    await using origin = await openTcpOrigin((socket) => accepted.resolve(socket));
    await using other = await openTcpOrigin(echo);
    const client = await framesTo(server, protocol);
    const [one] = TONGUES[protocol].ids as [number];
    const steady = await framesTo(server, protocol);
    await client.opened(one, origin.port);
    const far = await accepted.promise;
    const gone = [outcome(client.socket), outcome(far.resume())];
    const away = protocol === "yamux" ? client.expect("away 1") : Promise.resolve();
    client.send(frame);
    await away;
    assert.equal((await Promise.all(gone))[1], "ECONNRESET");
    await goesOn(steady, one, other.port);
    steady.socket.destroy();
  });

test(
  "yamux: pings are answered, windows are granted, and a client that goes away keeps its streams",
  { skip },
  async () => {
    await using server = await openServer();
    await using origin = await openTcpOrigin(echo);
    const client = await framesTo(server, "yamux");
    await client.opened(1, origin.port);
    assert.equal(client.credit(1), yamux.OUR_WINDOW - yamux.INITIAL_WINDOW);
    client.send(yamux.encodeHead(yamux.PING, yamux.SYN, 0, 77));
    await client.expect("ping 77");
    client.send(yamux.encodeHead(yamux.WINDOW_UPDATE, 0, 1, 8 << 20));
    const sent = randomBytes(900_000);
    client.sendData(1, sent);
    assert.ok((await client.got(1, 1 + sent.length)).subarray(1).equals(sent));
    await until("it is granted more", () => client.credit(1) > yamux.OUR_WINDOW);
    client.send(yamux.encodeHead(yamux.GO_AWAY, 0, 0, yamux.GO_AWAY_NORMAL));
    client.sendData(1, Buffer.from("last"));
    assert.equal(String((await client.got(1, 5 + sent.length)).subarray(-4)), "last");
    client.end(1);
    await client.expect("end 1");
    await client.expect("away 0");
    client.socket.destroy();
  },
);

test("yamux: what an origin says waits for the window of its stream alone", { skip }, async () => {
  await using server = await openServer();
  const bytes = randomBytes(1_000_000);
  await using origin = await openTcpOrigin((socket) => void socket.end(bytes));
  await using other = await openTcpOrigin(echo);
  const client = await framesTo(server, "yamux");
  await client.opened(1, origin.port);
  await client.got(1, yamux.INITIAL_WINDOW);
  await goesOn(client, 3, other.port);
  assert.equal(client.size(1), yamux.INITIAL_WINDOW);
  client.send(yamux.encodeHead(yamux.WINDOW_UPDATE, 0, 1, 100_000));
  await client.got(1, yamux.INITIAL_WINDOW + 100_000);
  client.send(yamux.encodeHead(yamux.WINDOW_UPDATE, 0, 1, 1 << 20));
  assert.ok((await client.got(1, 1 + bytes.length)).subarray(1).equals(bytes));
  await client.expect("end 1");
  client.socket.destroy();
});

test("smux: a client's end that comes with its connection's end is still one", { skip }, async () => {
  const got = Promise.withResolvers<Buffer>();
  await using server = await openServer();
  await using origin = await openTcpOrigin((socket) => got.resolve(readAll(socket)));
  const client = await framesTo(server, "smux");
  await client.opened(3, origin.port);
  client.sendData(3, Buffer.from("all of it"));
  client.end(3);
  assert.equal(String(await got.promise), "all of it");
  client.socket.end();
  await until("it has ended", () => server.ended.length === 1);
  assert.deepEqual(server.ended, [{ upload: 9, download: 0 }]);
});
