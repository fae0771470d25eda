/** Connections of HTTP/2 whose frames workers read, from their first stream to their end. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { test } from "node:test";
import { toDestination } from "#net/address/ip.ts";
import * as http2 from "#transport/http2/frames.ts";
import { inbox, outcome, readAll, roundTrip } from "../support/client.ts";
import { openHttp2Node } from "../support/http2-node.ts";
import {
  bobUuid,
  type FrameClient,
  framesTo,
  type Http2Kind,
  KINDS,
  message,
  nodeOf,
  openServer,
  requestFrame,
  REQUEST,
  trojanTo,
  vlessTo,
} from "../support/kept-http2.ts";
import { skip } from "../support/kept-sessions.ts";
import { countThenAnswer, echo, openTcpOrigin, source, untilHeldUp } from "../support/origin.ts";
import { grantingMeter } from "../support/relayed.ts";
import { until } from "../support/until.ts";

const PLAIN = KINDS["vless over grpc, plain"] as Http2Kind;
const TROJAN = KINDS["trojan over grpc, tls"] as Http2Kind;
/** Of VLESS, in front of all that is said. */
const ANSWER_BYTES = 2;

async function said(client: FrameClient, id: number, bytes: number): Promise<Buffer> {
  return (await client.got(id, ANSWER_BYTES + bytes)).subarray(ANSWER_BYTES);
}

/** The session goes on. */
async function goesOn(client: FrameClient, id: number, port: number): Promise<void> {
  client.open(id, Buffer.concat([vlessTo(port), Buffer.from("still")]));
  assert.equal(String(await said(client, id, 5)), "still");
}

for (const [name, kind] of Object.entries(KINDS)) {
  test(`${name}: streams of every size stay with the worker, and are counted`, { skip }, async () => {
    await using server = await openServer(kind);
    await using origin = await openTcpOrigin(echo);
    await using counter = await openTcpOrigin(countThenAnswer);
    await using greeter = await openTcpOrigin((socket) => void socket.end("hello"));
    await using node = await nodeOf(kind, server.port);
    const sizes = [1, 1000, 20_000, 70_000, 8 << 20, 3];
    for (const bytes of sizes) await roundTrip(await node.connect(origin.port), bytes);
    const upload = await node.connect(counter.port);
    upload.end(randomBytes(300_000));
    assert.equal(String(await readAll(upload)), "300000");
    const listening = await node.connect(greeter.port);
    listening.write("x"); // headers go with the first words
    assert.equal(String(await readAll(listening)), "hello");
    listening.end();
    const count = sizes.length + 2;
    await until("they have ended", () => server.ended.length === count);
    assert.deepEqual([server.kept.length, server.sessions.length, node.sockets.length], [count, count, 1]);
    const all = [...sizes.map((size) => `${size}/${size}`), "300000/6", "1/5"];
    assert.deepEqual(
      server.ended.map(({ upload: up, download }) => `${up}/${download}`).toSorted(),
      all.toSorted(),
    );
  });

  test(`${name}: streams side by side, of a node in a worker`, { skip }, async () => {
    await using server = await openServer(kind);
    await using origin = await openTcpOrigin(echo);
    await using node = await openHttp2Node(kind.protocol, { ...kind.client, port: server.port });
    const one = async (bytes: Buffer): Promise<void> => {
      using client = await node.dial(origin.port);
      client.send(bytes);
      assert.ok((await client.read(bytes.length)).equals(bytes));
      client.socket.end();
      assert.equal((await client.rest()).length, 0);
    };
    await one(randomBytes(10));
    await Promise.all(Array.from({ length: 40 }, (_, at) => one(randomBytes(1 + at * 5_000))));
    await until("they have ended", () => server.ended.length === 41);
    assert.equal(server.kept.length, 41);
  });
}

test("a header in any pieces of messages and frames", { skip }, async () => {
  await using server = await openServer(PLAIN);
  await using origin = await openTcpOrigin(echo);
  const client = await framesTo(PLAIN, server.port);
  const header = vlessTo(origin.port);
  const frame = (id: number, bytes: Uint8Array) => http2.encodeFrame(http2.DATA, 0, id, bytes);
  // A message a byte, a frame a byte, all torn byte by byte; a header alone; with empty messages and frames in between.
  client.send(requestFrame(1), ...[...header].map((byte) => frame(1, message(Buffer.of(byte)))));
  client.send(requestFrame(3), ...[...message(header)].map((byte) => frame(3, Buffer.of(byte))));
  for (const byte of Buffer.concat([requestFrame(5), frame(5, message(header))])) {
    client.send(Buffer.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
  client.send(
    requestFrame(7),
    frame(7, Buffer.alloc(5)),
    frame(7, Buffer.alloc(0)),
    frame(7, message(header)),
  );
  const padded = Buffer.concat([Buffer.of(20), message(header), Buffer.alloc(20)]);
  client.send(requestFrame(9), http2.encodeFrame(http2.DATA, http2.PADDED, 9, padded));
  for (const id of [1, 3, 5, 7, 9]) {
    client.say(id, `stream ${id}`);
    assert.equal(String(await said(client, id, 8)), `stream ${id}`);
  }
  client.socket.destroy();
  assert.equal(server.sessions.length, 5);
});

test("a header that was torn is one of many that are taken, once a user is known", { skip }, async () => {
  await using server = await openServer(PLAIN);
  await using origin = await openTcpOrigin(echo);
  const client = await framesTo(PLAIN, server.port);
  await goesOn(client, 1, origin.port);
  const header = vlessTo(origin.port);
  const ids = Array.from({ length: 100 }, (_, at) => 3 + 2 * at);
  for (const id of ids) client.open(id, header.subarray(0, 1));
  for (const id of ids) client.say(id, Buffer.concat([header.subarray(1), Buffer.from("ping")]));
  for (const id of ids) assert.equal(String(await said(client, id, 4)), "ping");
  client.socket.destroy();
});

test("ends from either side, in either order, and what comes with them", { skip }, async () => {
  let latest: Socket | null = null;
  await using origin = await openTcpOrigin((socket) => (latest = socket));
  await using server = await openServer(PLAIN);
  const client = await framesTo(PLAIN, server.port);
  const opened = async (id: number): Promise<Socket> => {
    latest = null;
    client.open(id, vlessTo(origin.port));
    await until("it is accepted", () => latest !== null);
    return latest as unknown as Socket;
  };
  const first = await opened(1);
  client.say(1, "said, and over", http2.END_STREAM);
  assert.equal(String(await readAll(first)), "said, and over");
  first.end("an answer");
  assert.equal(String(await said(client, 1, 9)), "an answer");
  await client.isOver(1);
  assert.equal(client.heard(1).valueOf("grpc-status"), "0");
  const second = await opened(3);
  second.end("the last words");
  await client.isOver(3);
  assert.equal(String(await said(client, 3, 14)), "the last words");
  client.say(3, "bye");
  client.send(requestFrame(3, [["grpc-status", "0"]], http2.END_STREAM)); // trailers end it, too
  assert.equal(String(await readAll(second)), "bye");
  const third = await opened(5);
  third.write("some");
  await said(client, 5, 4);
  third.resetAndDestroy();
  assert.equal(await client.isReset(5), http2.CANCEL);
  for (const [id, code] of [
    [7, http2.CANCEL],
    [9, http2.NO_ERROR],
  ] as const) {
    const far = await opened(id);
    const gone = outcome(far.resume());
    client.send(http2.encodeNumber(http2.RST_STREAM, id, code));
    assert.equal(await gone, "ECONNRESET", `reset by ${code}`);
  }
  await until("they have ended", () => server.ended.length === 5);
  const last = await opened(11);
  const failed = outcome(last);
  client.socket.end(); // a client that ends its connection is gone
  assert.equal(await failed, "ECONNRESET");
  await client.closed();
});

test("a client that takes no more streams keeps those that it has", { skip }, async () => {
  await using server = await openServer(PLAIN);
  await using origin = await openTcpOrigin(echo);
  const client = await framesTo(PLAIN, server.port);
  await goesOn(client, 1, origin.port);
  client.send(http2.encodeGoAway(0, http2.NO_ERROR));
  client.say(1, "more");
  assert.equal(String(await client.got(1, 4)), "more");
  client.say(1, "", http2.END_STREAM);
  await client.closed();
});

test("what is no stream is answered as servers of gRPC do", { skip }, async () => {
  await using server = await openServer(TROJAN);
  await using origin = await openTcpOrigin(echo);
  const client = await framesTo(TROJAN, server.port);
  const but = (name: string, value: string) =>
    REQUEST.map((field) => (field[0] === name ? ([name, value] as const) : field));
  client.send(requestFrame(1, but(":path", "/other")), requestFrame(3, but("content-type", "text/html")));
  await client.isOver(1);
  await client.isOver(3);
  assert.deepEqual(
    [client.heard(1).valueOf(":status"), client.heard(1).valueOf("grpc-status")],
    ["200", "12"],
  );
  assert.equal(client.heard(3).valueOf(":status"), "415");
  client.open(5, Buffer.concat([trojanTo(origin.port), Buffer.from("ping")]));
  assert.equal(String(await client.got(5, 4)), "ping");
  assert.equal(client.heard(5).valueOf(":status"), "200");
  client.socket.destroy();
  await until("it has ended", () => server.ended.length === 1);
});

test("XHTTP of one request: what is none is refused, beside its streams", { skip }, async () => {
  const kind = KINDS["vless over xhttp, tls"] as Http2Kind;
  await using server = await openServer(kind);
  await using origin = await openTcpOrigin(echo);
  const client = await framesTo(kind, server.port);
  const padded = `https://a.test/x/?x_padding=${"X".repeat(100)}`;
  const request = (id: number, fields: Readonly<Record<string, string>>): Buffer => {
    const usual = { ":method": "POST", ":scheme": "https", ":authority": "a.test", ":path": "/x/" };
    return requestFrame(id, Object.entries({ ...usual, referer: padded, ...fields }));
  };
  const refused = [
    ["400", { ":method": "GET", ":path": "/x/a-session" }],
    ["400", { ":path": "/x/a-session/0" }],
    ["400", { referer: "https://a.test/x/?x_padding=X" }],
    ["404", { ":method": "GET" }],
    ["404", { ":path": "/y/" }],
    ["404", { ":authority": "b.test" }],
  ] as const;
  for (const [at, [status, fields]] of refused.entries()) {
    client.send(request(2 * at + 1, fields));
    await client.isOver(2 * at + 1);
    assert.equal(client.heard(2 * at + 1).valueOf(":status"), status, JSON.stringify(fields));
  }
  for (const id of [101, 103]) {
    client.send(request(id, {}));
    client.say(id, vlessTo(origin.port));
    await until("it is answered", () => client.heard(id).valueOf(":status") === "200");
    assert.match(client.heard(id).valueOf("x-padding") ?? "", /^X{100,1000}$/);
  }
  client.say(103, "ping", http2.END_STREAM);
  assert.equal(String(await said(client, 103, 4)), "ping");
  await client.isOver(103);
  assert.equal(server.kept.length, 2);
  client.socket.destroy();
});

test("wrong users and noise cost their streams, and no other's", { skip }, async () => {
  await using server = await openServer(PLAIN);
  await using origin = await openTcpOrigin(echo);
  const client = await framesTo(PLAIN, server.port);
  const unknown = "99999999-2222-3333-4444-555555555555";
  client.open(1, vlessTo(origin.port, unknown));
  client.open(3, randomBytes(500));
  client.open(5, Buffer.concat([vlessTo(origin.port), Buffer.from("ping")]));
  client.send(requestFrame(7), http2.encodeFrame(http2.DATA, 0, 7, Buffer.alloc(100, 0xff))); // no message
  assert.equal(String(await said(client, 5, 4)), "ping");
  for (const id of [1, 3, 7])
    await until(`${id} is over`, () => client.heard(id).resetBy !== null || client.heard(id).isOver);
  await goesOn(client, 9, origin.port);
  assert.equal(server.sessions.length, 2);
  client.socket.destroy();
});

test("fallbacks have what their streams have said", { skip }, async () => {
  const got: string[] = [];
  await using site = await openTcpOrigin((socket) => {
    socket.on("data", (bytes: Buffer) => got.push(String(bytes)));
    socket.write("the site");
  });
  await using origin = await openTcpOrigin(echo);
  for (const [kind, header] of [
    [PLAIN, vlessTo],
    [TROJAN, trojanTo],
  ] as const) {
    await using server = await openServer(kind, { fallbacks: [{ dest: `127.0.0.1:${site.port}` }] });
    const client = await framesTo(kind, server.port);
    const noise = "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: everything that there is\r\n\r\n";
    client.open(1, Buffer.from(noise));
    assert.equal(String(await client.got(1, 8)), "the site");
    assert.equal(got.splice(0).join(""), noise);
    client.open(3, Buffer.concat([header(origin.port), Buffer.from("ping")]));
    const answered = await client.got(3, kind === PLAIN ? 6 : 4);
    assert.equal(String(answered.subarray(-4)), "ping");
    client.socket.destroy();
  }
});

test("a slow reader holds back itself, in both directions", { skip }, async () => {
  const accepted = Promise.withResolvers<Socket>();
  await using slow = await openTcpOrigin((socket) => accepted.resolve(socket.pause()));
  const { on, sent } = source(30_000_000);
  await using long = await openTcpOrigin(on);
  await using origin = await openTcpOrigin(echo);
  await using server = await openServer(PLAIN);
  await using node = await nodeOf(PLAIN, server.port);
  const up = await node.connect(slow.port);
  const bytes = randomBytes(30 << 20);
  const pieces = Array.from({ length: 30 }, (_, at) => bytes.subarray(at << 20, (at + 1) << 20));
  Readable.from(pieces).pipe(up.resume()); // the library holds no more of a connection than 10 MB
  const far = await accepted.promise;
  const down = await node.connect(long.port);
  down.write("x");
  await untilHeldUp(sent);
  assert.ok(sent() < 30_000_000);
  for (const size of [1, 300_000]) await roundTrip(await node.connect(origin.port), size);
  far.resume();
  assert.ok((await readAll(far)).equals(bytes));
  assert.equal((await readAll(down)).length, 30_000_000);
});

test("answers go on beside uploads that wait", { skip }, async () => {
  const [answer, far] = [randomBytes(1 << 20), new Set<Socket>()];
  await using origin = await openTcpOrigin((socket) => {
    far.add(socket.pause());
    socket.write(answer);
  });
  await using server = await openServer(PLAIN);
  const client = await framesTo(PLAIN, server.port);
  const ids = [1, 3, 5, 7];
  for (const id of ids) client.open(id, vlessTo(origin.port));
  await client.fill(ids, Buffer.alloc(16_000));
  for (const id of [0, ...ids]) client.send(http2.encodeNumber(http2.WINDOW_UPDATE, id, 1 << 30));
  for (const id of ids) assert.ok((await said(client, id, answer.length)).equals(answer));
  for (const socket of far) socket.on("end", () => socket.end()).resume();
  for (const id of ids) client.say(id, "", http2.END_STREAM);
  for (const id of ids) await client.isOver(id);
  client.socket.destroy();
});

for (const name of ["vless over grpc, plain", "trojan over grpc, tls"]) {
  const kind = KINDS[name] as Http2Kind;
  test(`${name}: datagrams, and sessions of smux, in streams`, { skip }, async () => {
    await using server = await openServer(kind);
    await using origin = await openTcpOrigin(echo);
    server.onFlow = ({ flow }) => flow.receive((item) => flow.send(item));
    await using node = await nodeOf(kind, server.port);
    const context = { signal: AbortSignal.timeout(20_000), metadata: null };
    const remote = toDestination("127.0.0.1", 53);
    const flow = await node.outbound.associate(remote, context);
    const { next } = inbox(flow);
    for (let at = 0; at < 5; at++) {
      flow.send({ payload: Buffer.from(`packet ${at}`), destination: remote });
      assert.equal(String((await next()).payload), `packet ${at}`);
    }
    await roundTrip(await node.connect(origin.port), 100_000);
    assert.equal(server.kept.length, 1);
    await using shared = await nodeOf(kind, server.port, {
      smux: { enabled: true, protocol: "smux", "max-connections": 1 },
    });
    for (const bytes of [1, 50_000, 1 << 20]) await roundTrip(await shared.connect(origin.port), bytes);
    assert.equal(server.sessions.length, 4);
  });
}

test(
  "a removed user loses its streams, and others in the same connection keep theirs",
  { skip },
  async () => {
    await using server = await openServer(PLAIN);
    await using origin = await openTcpOrigin(echo);
    const client = await framesTo(PLAIN, server.port);
    await goesOn(client, 1, origin.port);
    client.open(3, Buffer.concat([vlessTo(origin.port, bobUuid), Buffer.from("bob's")]));
    assert.equal(String(await said(client, 3, 5)), "bob's");
    const users = server.sessions.map(({ metadata }) => metadata.inbound.user);
    assert.deepEqual(users, ["ann", "bob"]);
    server.inbound.replaceUsers([{ id: "bob", credential: bobUuid, flow: null }]);
    assert.equal(await client.isReset(1), http2.CANCEL);
    client.say(3, "again");
    assert.equal(String(await client.got(3, 5)), "again");
    await until("it has ended", () => server.ended.length === 1);
    client.socket.destroy();
  },
);

test("a limited user moves nothing without leave, and all is counted once", { skip }, async () => {
  await using server = await openServer(PLAIN);
  await using origin = await openTcpOrigin(echo);
  await using node = await nodeOf(PLAIN, server.port);
  const { meter, reserved } = grantingMeter();
  server.meter = meter;
  await roundTrip(await node.connect(origin.port), 300_000);
  await until("it has ended", () => server.ended.length === 1);
  assert.deepEqual(server.ended[0], reserved);
  assert.deepEqual(reserved, { upload: 300_000, download: 300_000 });
});

test("a listener that stops accepting keeps its connections", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using server = await openServer(PLAIN);
  const client = await framesTo(PLAIN, server.port);
  await goesOn(client, 1, origin.port);
  await server.stopAccepting();
  await goesOn(client, 3, origin.port);
  client.socket.destroy();
});

test("streams that the event loop serves, beside those of the worker", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using server = await openServer(PLAIN);
  const client = await framesTo(PLAIN, server.port);
  await goesOn(client, 1, origin.port);
  server.instead = (session) => {
    session.reply(null);
    session.stream.on("error", () => {}).pipe(session.stream);
  };
  client.open(3, vlessTo(origin.port));
  await echoedFrames(client, 3, 40_000);
  client.say(3, "", http2.END_STREAM);
  await client.isOver(3);
  assert.equal(client.heard(3).valueOf("grpc-status"), "0");
  server.instead = null;
  await goesOn(client, 5, origin.port);
  client.socket.destroy();
});

async function echoedFrames(client: FrameClient, id: number, size: number): Promise<void> {
  const sent = randomBytes(size);
  for (let at = 0; at < size; at += 10_000) client.say(id, sent.subarray(at, at + 10_000));
  assert.ok((await said(client, id, size)).equals(sent));
}
