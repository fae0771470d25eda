/** Vision that workers speak from the first byte on, as nodes and as listeners: what passes, when TLS is left, and faulty peers. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { connect as tlsConnect } from "node:tls";
import type { TlsClient } from "#core/tls.ts";
import { toDestination } from "#net/address/ip.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { userIdBytes } from "#protocols/shared/user-id.ts";
import {
  CONTINUE,
  type Command,
  DIRECT,
  encodeBlock,
  END,
  Unpadder,
} from "#protocols/shared/vision-padding.ts";
import { vless } from "#protocols/vless/index.ts";
import { COMMAND_TCP, encodeRequest, VISION } from "#protocols/vless/wire.ts";
import { echoed, readAll } from "../support/client.ts";
import type { DecidingEngine } from "../support/deciding-engine.ts";
import { openKeptClients, type KeptClients } from "../support/kept-clients.ts";
import { acceptLeaving, dialLeaving, type LeavingPeer } from "../support/leaving-peer.ts";
import { echo, openTcpOrigin, source, untilHeldUp } from "../support/origin.ts";
import { openServer } from "../support/protocol-pair.ts";
import { openRawClient } from "../support/raw-client.ts";
import { openSite, privateKey, realityClient, SHORT_ID, SITE } from "../support/reality.ts";
import { grantingMeter } from "../support/relayed.ts";
import { socksConnect } from "../support/socks-client.ts";
import { certificate, tlsClient } from "../support/tls-origin.ts";
import { tlsProvider } from "../support/tls.ts";
import { openNodeEngine } from "../support/node-engine.ts";
import { until } from "../support/until.ts";
import { openTap, openTlsOrigin } from "../support/vision.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const skip = process.platform === "linux" ? false : "SKIP Vision in workers: needs Linux";
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const id = userIdBytes(uuid);
const WAYS = [{}, { "client-fingerprint": "chrome" }];
const named = (way: object): string => Object.values(way).join("") || "the library";

const openListener = (): Promise<KeptClients> =>
  openKeptClients(vless, {
    certificate: certificate.cert,
    "private-key": certificate.key,
    users: [{ username: "ann", uuid, flow: VISION }],
  });

/** Everything leads through a node at that port. */
async function openNode(port: number, way: object = {}): Promise<DecidingEngine> {
  return await openNodeBy(port, await tlsClient(tlsProvider, way, { minVersion: "TLSv1.3" }));
}

async function openNodeBy(port: number, client: TlsClient): Promise<DecidingEngine> {
  const tls = client.recipe?.() ?? null;
  assert.ok(tls !== null);
  const vless = recipe("vless", { id: Uint8Array.from(id), flow: VISION });
  return await openNodeEngine(port, { ...vless, under: { tls, upgrade: null } });
}

/** A client, a node, a listener, all of them workers' but the first; with what passes between them. */
async function openChain(way: object, cut: number | null = null) {
  await using undo = new AsyncDisposableStack();
  const server = undo.use(await openListener());
  const outer = undo.use(await openTap(server.port, cut));
  const engine = undo.use(await openNode(outer.port, way));
  const inner = undo.use(await openTap(engine.port, null));
  const all = undo.move();
  return { server, outer, engine, inner, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

async function dial(port: number, to: number): Promise<Socket> {
  const { client, status } = await socksConnect(port, "127.0.0.1", to);
  assert.equal(status, 0);
  client.socket.on("error", () => {});
  return client.socket;
}

async function dialInner(port: number, to: number): Promise<Duplex> {
  const inner = tlsConnect({ socket: await dial(port, to), rejectUnauthorized: false });
  inner.on("error", () => {});
  await once(inner, "secureConnect");
  return inner;
}

const SIZE = 1 << 20;

for (const way of WAYS)
  for (const cut of [null, 7, 900])
    for (const version of ["TLSv1.3", "TLSv1.2"] as const)
      test(`${version} inside, by ${named(way)}, in pieces of ${cut ?? "any"} bytes`, { skip }, async () => {
        await using chain = await openChain(way, cut);
        await using origin = await openTlsOrigin(version, (socket) => void socket.pipe(socket));
        const stream = await dialInner(chain.inner.port, origin.destination.port);
        await echoed(stream, SIZE);
        stream.end();
        await until("both have ended", () => chain.engine.served.length + chain.server.ended.length === 2);
        const { outer, inner } = chain;
        const tails = [inner.up(), inner.down()].map((bytes) => bytes.subarray(-SIZE / 2));
        const isBare = [outer.up().includes(tails[0] as Buffer), outer.down().includes(tails[1] as Buffer)];
        assert.deepEqual(isBare, version === "TLSv1.3" ? [true, true] : [false, false]);
        assert.equal(chain.server.kept.length, 1);
        assert.equal(chain.engine.asked.length + chain.engine.handedOver, 0);
      });

for (const way of WAYS)
  test(`what is not TLS stays inside, and both sides half-close, by ${named(way)}`, { skip }, async () => {
    await using chain = await openChain(way);
    await using origin = await openTcpOrigin(echo);
    const stream = await dial(chain.engine.port, origin.port);
    const bytes = randomBytes(3 * SIZE);
    stream.end(bytes);
    assert.ok((await readAll(stream)).equals(bytes));
    assert.equal(chain.outer.up().includes(bytes.subarray(-SIZE)), false);
    await until("it is reported", () => chain.engine.served.length + chain.server.ended.length === 2);
    assert.equal(chain.engine.served[0]?.uploadBytes, bytes.length);
    assert.deepEqual(chain.server.ended[0], { upload: bytes.length, download: bytes.length });
  });

test(
  "REALITY is left as TLS is, and by its listener, which has the event loop open it",
  { skip },
  async () => {
    await using dest = await openSite();
    const reality = {
      dest: `127.0.0.1:${dest.port}`,
      "private-key": privateKey,
      "short-id": [SHORT_ID],
      "server-names": [SITE],
    };
    await using server = await openServer(vless, {
      "reality-config": reality,
      users: [{ uuid, flow: VISION }],
    });
    await using tap = await openTap(server.port, null);
    await using engine = await openNodeBy(tap.port, await realityClient(tlsProvider, {}));
    await using inner = await openTap(engine.port, null);
    await using origin = await openTlsOrigin("TLSv1.3", (socket) => void socket.pipe(socket));
    const stream = await dialInner(inner.port, origin.destination.port);
    await echoed(stream, SIZE);
    stream.end();
    await until("it has ended", () => engine.served.length === 1);
    assert.ok(tap.up().includes(inner.up().subarray(-SIZE / 2)));
    assert.ok(tap.down().includes(inner.down().subarray(-SIZE / 2)));
  },
);

test("half-closes behind the switch, and a reset", { skip }, async () => {
  await using chain = await openChain({});
  await using origin = await openTlsOrigin("TLSv1.3", (socket) => {
    void readAll(socket).then((got) => socket.end(String(got.length)));
  });
  const stream = await dialInner(chain.engine.port, origin.destination.port);
  stream.end(Buffer.alloc(SIZE));
  assert.equal(String(await readAll(stream)), String(SIZE));
  await until("it is over", () => chain.server.ended.length === 1);
  await using other = await openTlsOrigin("TLSv1.3", (socket) => void socket.pipe(socket));
  const socket = await dial(chain.engine.port, other.destination.port);
  const inner = tlsConnect({ socket, rejectUnauthorized: false });
  inner.on("error", () => {});
  await once(inner, "secureConnect");
  await echoed(inner, SIZE);
  socket.resetAndDestroy();
  await until("it is over, too", () => chain.server.ended.length === 2);
});

test("a slow reader holds the sender back, behind the switch, too", { skip }, async () => {
  await using chain = await openChain({});
  const much = source(64 * SIZE);
  await using origin = await openTlsOrigin("TLSv1.3", (socket) => much.on(socket));
  const stream = await dialInner(chain.engine.port, origin.destination.port);
  stream.pause();
  await untilHeldUp(much.sent);
  stream.resume();
  await until("all of it has come", () => much.sent() === 64 * SIZE);
  stream.destroy();
});

for (const version of ["TLSv1.3", null] as const)
  test(`a limited user moves nothing without leave, ${version ?? "no TLS"} inside`, { skip }, async () => {
    await using chain = await openChain({});
    const { meter, reserved } = grantingMeter();
    chain.server.meter = meter;
    await using echoing = await openTcpOrigin(echo);
    await using secure = await openTlsOrigin("TLSv1.3", (socket) => void socket.pipe(socket));
    const port = version === null ? echoing.port : secure.destination.port;
    const stream = await (version === null ? dial : dialInner)(chain.engine.port, port);
    await echoed(stream, SIZE);
    stream.end();
    await until("it has ended", () => chain.server.ended.length === 1);
    assert.deepEqual(chain.server.ended[0], reserved);
    assert.ok(reserved.upload >= SIZE && reserved.download >= SIZE);
  });

// Against peers whose every byte is the test's.

const request = (port: number): Buffer =>
  encodeRequest(id, { flow: VISION, command: COMMAND_TCP, destination: toDestination("127.0.0.1", port) });
const block = (command: Command, content: string, isFirst = false): Buffer =>
  encodeBlock(isFirst ? id : null, command, Buffer.from(content), false);

/** What is in the blocks of a direction, and what comes behind them. */
function unpadded(bytes: Buffer): { readonly content: string; readonly state: string } {
  const unpadder = new Unpadder(id);
  let content = "";
  const behind = unpadder.take(bytes, (piece) => (content += piece.toString("latin1")));
  return { content: content + (behind ?? Buffer.alloc(0)).toString("latin1"), state: unpadder.state };
}
const ANSWER_BYTES = 2;
const said = (peer: LeavingPeer): string => unpadded(peer.secured().subarray(ANSWER_BYTES)).content;

test(
  "a client leaves TLS with data glued behind the record, and its listener does not",
  { skip },
  async () => {
    await using server = await openListener();
    await using origin = await openTcpOrigin(echo);
    using peer = await dialLeaving(server.port);
    await peer.say(Buffer.concat([request(origin.port), block(CONTINUE, "one ", true)]));
    await peer.sayAndLeave(block(DIRECT, "two "), Buffer.from("three "));
    await until("it has come back", () => said(peer) === "one two three ");
    peer.socket.write("four");
    await until("and more", () => said(peer) === "one two three four");
    assert.deepEqual([...peer.secured().subarray(0, ANSWER_BYTES)], [0, 0]);
    peer.socket.end();
    await peer.ended;
    await until("it has ended", () => server.ended.length === 1);
    assert.deepEqual(server.ended, [{ upload: 18, download: 18 }]);
    assert.equal(server.kept.length, 1);
  },
);

test("all that a client has to say comes in one flight, its end behind the switch", { skip }, async () => {
  await using server = await openListener();
  await using origin = await openTcpOrigin(echo);
  const bare = randomBytes(SIZE).toString("latin1");
  for (const content of ["", "one "]) {
    using peer = await dialLeaving(server.port);
    const first = Buffer.concat([request(origin.port), block(DIRECT, content, true)]);
    await peer.sayAndLeave(first, Buffer.from(bare, "latin1"));
    peer.socket.end();
    await peer.ended;
    assert.ok(said(peer) === content + bare);
  }
  await until("they have ended", () => server.ended.length === 2);
  assert.deepEqual(
    server.ended.map(({ upload, download }) => [upload - SIZE, download - SIZE]),
    [
      [0, 0],
      [4, 4],
    ],
  );
  assert.equal(server.kept.length, 2);
});

test(
  "blocks may be empty, thousands of them, and have each byte in a record of its own",
  { skip },
  async () => {
    await using server = await openListener();
    await using origin = await openTcpOrigin(echo);
    using peer = await dialLeaving(server.port);
    await peer.say(Buffer.concat([request(origin.port), block(CONTINUE, "", true)]));
    await peer.say(Buffer.alloc(5 * 20_000));
    const last = Buffer.concat([block(CONTINUE, "one "), block(DIRECT, "two ")]);
    for (const byte of last.subarray(0, -1)) await peer.say(Buffer.of(byte));
    await peer.sayAndLeave(last.subarray(-1), Buffer.from("three"));
    await until("it has come back", () => said(peer) === "one two three");
    peer.socket.end();
    await peer.ended;
    await until("it has ended", () => server.ended.length === 1);
    assert.deepEqual(server.ended, [{ upload: 13, download: 13 }]);
  },
);

test(
  "where the dial fails, the event loop goes on with what is glued behind the switch",
  { skip },
  async () => {
    await using server = await openListener();
    const closed = await openTcpOrigin(echo);
    await closed[Symbol.asyncDispose]();
    server.plan = { isFirstOfMany: true };
    using peer = await dialLeaving(server.port);
    const bare = randomBytes(SIZE).toString("latin1");
    const first = Buffer.concat([request(closed.port), block(DIRECT, "one ", true)]);
    await peer.sayAndLeave(first, Buffer.from(bare, "latin1"));
    peer.socket.end();
    await until("it has failed", () => server.failures.length === 1);
    const [session = assert.fail()] = server.sessions;
    session.stream.pipe(session.stream);
    await peer.ended;
    assert.ok(said(peer) === `one ${bare}`);
    assert.equal(server.kept.length, 1);
  },
);

/** The request of the client of a node, and what its content begins with. */
const REQUEST_BYTES = request(9).length;
const upward = (peer: LeavingPeer): string => unpadded(peer.secured().subarray(REQUEST_BYTES)).content;

for (const way of WAYS)
  test(
    `a server leaves TLS with data glued behind the record, and its client, by ${named(way)}, does not`,
    { skip },
    async () => {
      const accepted = Promise.withResolvers<LeavingPeer>();
      await using server = await openTcpOrigin((socket) => void acceptLeaving(socket).then(accepted.resolve));
      await using engine = await openNode(server.port, way);
      using client = await openRawClient(engine.port);
      client.send(Uint8Array.of(5, 1, 0));
      await client.read(2);
      client.send(Buffer.concat([Uint8Array.of(5, 1, 0, 1, 127, 0, 0, 1, 0, 9), Buffer.from("ping")]));
      await client.read(10);
      using peer = await accepted.promise;
      await until("the request has come", () => peer.pieces.length > 0);
      assert.deepEqual(peer.secured().subarray(0, REQUEST_BYTES), request(9));
      assert.equal(upward(peer), "ping", "in one record with it");
      await peer.say(Buffer.concat([Buffer.of(0, 2, 7, 7), block(CONTINUE, "one ", true)]));
      await peer.sayAndLeave(block(DIRECT, "two "), Buffer.from("three "));
      assert.equal(String(await client.read(14)), "one two three ");
      const big = randomBytes(SIZE);
      peer.socket.write(big);
      assert.ok((await client.read(SIZE)).equals(big));
      client.send(" pong");
      await until("it still comes in TLS", () => upward(peer) === "ping pong");
      peer.socket.end();
      assert.equal((await client.rest()).length, 0);
    },
  );

test("a node whose client is silent asks with a padded block that is empty", { skip }, async () => {
  const accepted = Promise.withResolvers<LeavingPeer>();
  await using server = await openTcpOrigin((socket) => void acceptLeaving(socket).then(accepted.resolve));
  await using engine = await openNode(server.port);
  const { client } = await socksConnect(engine.port, "127.0.0.1", 9);
  using _client = client;
  using peer = await accepted.promise;
  await until("the request has come", () => peer.pieces.length > 0);
  const padding = (peer.pieces[0] ?? 0) - REQUEST_BYTES - 16 - 5;
  assert.ok(padding >= 900 && padding < 1400, `${padding}`);
  await peer.say(Buffer.concat([Buffer.of(0, 0), block(END, "hello", true)]));
  assert.equal(String(await client.read(5)), "hello");
  await until("it pads no more, either", () => peer.pieces.length === 2);
  client.send("plain");
  await until("it has come", () => peer.pieces.length === 3);
  assert.equal(peer.pieces[2], 5);
  client.socket.end();
  await peer.ended;
});

const HOSTILE: readonly (readonly [what: string, bytes: Buffer])[] = [
  ["an unknown command", Buffer.concat([id, Buffer.of(3, 0, 1, 0, 0, 1)])],
  [
    "an unknown command behind a block",
    Buffer.concat([block(CONTINUE, "x", true), Buffer.of(9, 0, 0, 0, 0)]),
  ],
];
for (const [what, bytes] of HOSTILE) {
  test(`a client that says ${what} is reset`, { skip }, async () => {
    await using server = await openListener();
    await using origin = await openTcpOrigin(echo);
    using peer = await dialLeaving(server.port);
    await peer.say(Buffer.concat([request(origin.port), bytes]));
    await peer.ended;
    await until("it has ended", () => server.ended.length === 1);
  });

  test(`a server that says ${what} is left`, { skip }, async () => {
    const accepted = Promise.withResolvers<LeavingPeer>();
    await using server = await openTcpOrigin((socket) => void acceptLeaving(socket).then(accepted.resolve));
    await using engine = await openNode(server.port);
    const { client } = await socksConnect(engine.port, "127.0.0.1", 9);
    using _client = client;
    client.send("ping");
    using peer = await accepted.promise;
    await until("the request has come", () => peer.pieces.length > 0);
    await peer.say(Buffer.concat([Buffer.of(0, 0), bytes]));
    await client.rest();
    await peer.ended;
    await until("it is reported", () => engine.served.length === 1);
  });
}

test("a block that is longer than what comes is over with the connection", { skip }, async () => {
  await using server = await openListener();
  await using origin = await openTcpOrigin(echo);
  using peer = await dialLeaving(server.port);
  const head = Buffer.concat([id, Buffer.of(CONTINUE, 0xff, 0xff, 0xff, 0xff)]);
  await peer.say(Buffer.concat([request(origin.port), head, Buffer.from("content")]));
  await until("that much has come back", () => said(peer) === "content");
  peer.socket.resetAndDestroy();
  await until("it has ended", () => server.ended.length === 1);
  assert.deepEqual(server.ended, [{ upload: 7, download: 7 }]);
});

test("a worker that dies ends both sides", { skip }, async () => {
  using killer = new WorkerKiller();
  await using chain = await openChain({});
  await using origin = await openTlsOrigin("TLSv1.3", (socket) => void socket.pipe(socket));
  const stream = await dialInner(chain.engine.port, origin.destination.port);
  await echoed(stream, SIZE);
  const gone = new Promise((resolve) => stream.once("close", resolve));
  await killer.kill("relay");
  await gone;
  await until("it has ended", () => chain.server.ended.length === 1);
});
