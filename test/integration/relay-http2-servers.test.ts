/** Nodes over gRPC whose streams workers open, and servers of all manners: by Node's library, and such as break the protocol. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { vless } from "#protocols/vless/index.ts";
import * as http2 from "#transport/http2/frames.ts";
import { encodeSection } from "#transport/http2/hpack.ts";
import { outcome } from "../support/client.ts";
import { hashOf } from "../support/connections.ts";
import { type Http2Node, openGate, openHttp2Node } from "../support/http2-node.ts";
import { message } from "../support/kept-http2.ts";
import { answerByEcho, openLibraryServer, PORT } from "../support/http2-servers.ts";
import { openTcpOrigin } from "../support/origin.ts";
import type { RawClient } from "../support/raw-client.ts";
import { certificate, openTlsOrigin } from "../support/tls-origin.ts";
import { uuid } from "../support/tls-sides.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP nodes by workers: needs Linux";

const GRPC = { uuid, network: "grpc", "grpc-opts": { "grpc-service-name": "Gun" } };
const openNode = (port: number, grpc: object = {}): Promise<Http2Node> =>
  openHttp2Node(vless, { ...GRPC, port, "grpc-opts": { ...GRPC["grpc-opts"], ...grpc } });

async function pings(client: RawClient): Promise<void> {
  client.send("ping");
  assert.equal(String(await client.read(4)), "ping");
}

const aloneWith = ({ engine }: Http2Node) =>
  assert.deepEqual([engine.asked.length, engine.handedOver, engine.deaths], [0, 0, 0]);

test("a server's bound of streams opens a further connection", { skip }, async () => {
  await using server = await openLibraryServer({ maxConcurrentStreams: 2 }, answerByEcho);
  await using node = await openNode(server.port);
  const clients: RawClient[] = [];
  for (let at = 0; at < 5; at++) {
    const client = await node.dial(PORT);
    clients.push(client);
    await pings(client);
  }
  assert.equal(server.sessions.length, 3);
  for (const { socket } of clients) socket.destroy();
  await until("all have been reported", () => node.engine.served.length === 5);
  aloneWith(node);
});

test("clients that come at once are as many in a connection as the node has them", { skip }, async () => {
  await using server = await openLibraryServer({}, answerByEcho);
  await using node = await openNode(server.port, { "max-streams": 2 });
  const dialled = async (): Promise<RawClient> => {
    const client = await node.dial(PORT);
    await pings(client);
    return client;
  };
  const first = await Promise.all(Array.from({ length: 5 }, dialled));
  assert.equal(server.sessions.length, 3);
  const more = await Promise.all(Array.from({ length: 4 }, dialled));
  assert.equal(server.sessions.length, 5);
  for (const { socket } of [...first, ...more]) socket.destroy();
  await until("all have been reported", () => node.engine.served.length === 9);
  aloneWith(node);
});

test("bulk both ways, whatever windows the server has", { skip, timeout: 60_000 }, async () => {
  for (const [initialWindowSize, bytes] of [
    [65_535, 3_000_000],
    [16_389, 1_000_000],
    [1_000, 100_000],
    [13, 500],
  ] as const) {
    await using server = await openLibraryServer({ initialWindowSize }, answerByEcho);
    await using node = await openNode(server.port);
    const one = async (): Promise<void> => {
      using client = await node.dial(PORT);
      const sent = randomBytes(bytes);
      client.send(sent);
      assert.equal(hashOf(await client.read(bytes)), hashOf(sent));
      client.socket.end();
      assert.equal((await client.rest()).length, 0);
    };
    await Promise.all([one(), one(), one()]);
    assert.equal(server.sessions.length, 1);
    aloneWith(node);
  }
});

test("a server that refuses costs its stream alone, at once", { skip }, async () => {
  let path: "echo" | "404" | "status 12" | "trailers 12" | "reset" | "refused" = "echo";
  await using server = await openLibraryServer({}, (stream) => {
    if (path === "echo") answerByEcho(stream);
    else if (path === "404") {
      stream.respond({ ":status": 404 });
      stream.end("not here");
    } else if (path === "status 12")
      stream.respond({ ":status": 200, "grpc-status": "12" }, { endStream: true });
    else if (path === "trailers 12") {
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "12" })).end();
    } else if (path === "reset") stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    else stream.close(constants.NGHTTP2_REFUSED_STREAM);
  });
  await using node = await openNode(server.port);
  using kept = await node.dial(PORT);
  await pings(kept);
  for (path of ["404", "status 12", "trailers 12", "reset", "refused"] as const) {
    const client = await node.dial(PORT);
    const end = outcome(client.socket);
    client.send("ping");
    assert.equal(await end, "ECONNRESET", path);
    await pings(kept);
  }
  path = "echo";
  using next = await node.dial(PORT);
  await pings(next);
  assert.equal(server.sessions.length, 1);
  aloneWith(node);
});

test(
  "a server that goes away lets its streams end, and the next ones are in another connection",
  { skip },
  async () => {
    await using server = await openLibraryServer({}, answerByEcho);
    await using gate = await openGate(server.port);
    await using node = await openNode(gate.port);
    using first = await node.dial(PORT);
    await pings(first);
    server.sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR);
    await pings(first);
    using second = await node.dial(PORT);
    await pings(second);
    assert.equal(server.sessions.length, 2);
    await pings(first);
    first.socket.end();
    assert.equal((await first.rest()).length, 0);
    await until("it is closed", () => gate.connections[0]?.readableEnded === true);
    await pings(second);
    aloneWith(node);
  },
);

test("answers that come ahead, and ends that come without trailers", { skip }, async () => {
  await using server = await openLibraryServer({}, (stream) => {
    stream.additionalHeaders({ ":status": 103, link: "</x>" });
    stream.respond({ ":status": 200 });
    let got = 0;
    stream.on("data", (bytes: Buffer) => {
      got += bytes.length;
      if (got === bytes.length) stream.end(Buffer.from("00000000070a05" + "0000" + "627965", "hex"));
    });
  });
  await using node = await openNode(server.port);
  using client = await node.dial(PORT);
  client.send("ping");
  assert.equal(String(await client.rest()), "bye");
  aloneWith(node);
});

test(
  "a server of TLS that speaks no HTTP/2 is for the event loop, or ends its clients",
  { skip },
  async () => {
    const page = (socket: Socket): void =>
      void socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const tls = { tls: true, servername: "server.test", fingerprint: certificate.fingerprint };
    for (const more of [{}, { "client-fingerprint": "chrome" }]) {
      await using other = await openTlsOrigin({ ALPNProtocols: ["http/1.1"] }, page);
      await using ofOther = await openHttp2Node(vless, { ...GRPC, ...tls, ...more, port: other.port });
      await assert.rejects(ofOther.dial(PORT));
      await until("it is given up", () => ofOther.engine.handedOver === 1);
      await using older = await openTlsOrigin({}, page); // it chooses nothing
      await using ofOlder = await openHttp2Node(vless, { ...GRPC, ...tls, ...more, port: older.port });
      const client = await ofOlder.dial(PORT).catch(() => null);
      if (client !== null) await assert.rejects(client.read(1));
      const { engine } = ofOlder;
      await until("it is over", () => engine.handedOver + engine.served.length === 1);
    }
  },
);

const { encodeFrame: frame, encodeNumber: number } = http2;
const OK = encodeSection([[":status", "200"]], false);
/** A message with the answer of VLESS and "pong". */
const PONG = Buffer.from("00000000080a060000706f6e67", "hex");
const END = frame(http2.DATA, http2.END_STREAM, 1, Buffer.alloc(0));
const NO_MORE = number(http2.RST_STREAM, 1, http2.NO_ERROR);

for (const [how, end] of [
  ["behind its end", Buffer.concat([END, NO_MORE])],
  ["in place of it", NO_MORE],
] as const)
  test(`a server that wants no more ends uploads, and its answer is whole: ${how}`, { skip }, async () => {
    const accepted = Promise.withResolvers<Socket>();
    await using server = await openTcpOrigin((socket) => {
      accepted.resolve(socket.resume());
      socket.write(http2.encodeSettings([]));
    });
    await using node = await openNode(server.port);
    const client = await node.dial(PORT);
    client.send(randomBytes(8 << 20)); // more than the server takes
    const socket = await accepted.promise;
    const said = randomBytes(3_000_000);
    socket.write(
      Buffer.concat([frame(http2.HEADERS, http2.END_HEADERS, 1, OK), frame(http2.DATA, 0, 1, PONG)]),
    );
    assert.equal(String(await client.read(4)), "pong");
    client.socket.pause();
    for (let at = 0; at < said.length; at += 10_000)
      socket.write(frame(http2.DATA, 0, 1, message(said.subarray(at, at + 10_000))));
    socket.write(end);
    await delay(300);
    client.socket.resume();
    assert.ok((await client.rest()).equals(said));
    await until("nothing is left of it", () => node.engine.served.length === 1);
    aloneWith(node);
  });

const HOSTILE: readonly (readonly [string, readonly Buffer[]])[] = [
  ["HTTP/1.1", [Buffer.from("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")]],
  ["data beyond the window", beyond()],
  ["windows beyond all", [number(http2.WINDOW_UPDATE, 1, 0x7fff_ffff)]],
  ["a push", [frame(http2.PUSH_PROMISE, http2.END_HEADERS, 1, Buffer.alloc(4))]],
  [
    "sections without end",
    Array.from({ length: 9 }, (_, at) => frame(at === 0 ? 1 : 9, 0, 1, Buffer.alloc(9_000))),
  ],
  ["no HPACK", [frame(http2.HEADERS, http2.END_HEADERS, 1, Buffer.of(0xff))]],
  ["frames of any size", [frame(http2.DATA, 0, 1, Buffer.alloc(20_000))]],
  ["padding of more than there is", [frame(http2.DATA, http2.PADDED, 1, Buffer.of(9, 0))]],
];

/** More than the stream takes, and the sockets of a client that does not read. */
function beyond(): readonly Buffer[] {
  const head = Buffer.from("00ffffffff0a80808040", "hex"); // one message without an end
  const body = Buffer.alloc(16_384);
  const first = frame(http2.DATA, 0, 1, head);
  return [first, ...Array.from({ length: 1_500 }, () => frame(http2.DATA, 0, 1, body))];
}

for (const [what, frames] of HOSTILE)
  test(`a server that breaks the protocol loses its connection alone: ${what}`, { skip }, async () => {
    const sockets: Socket[] = [];
    await using server = await openTcpOrigin((socket) => {
      sockets.push(socket);
      socket.resume();
      socket.write(http2.encodeSettings([]));
    });
    await using node = await openNode(server.port, { "max-streams": 2 });
    const answer = (socket: Socket | undefined, id: number): void => {
      socket?.write(frame(http2.HEADERS, http2.END_HEADERS, id, OK));
      socket?.write(frame(http2.DATA, 0, id, PONG));
    };
    const clients: RawClient[] = [];
    for (const [connection, id] of [
      [0, 1],
      [0, 3],
      [1, 1],
    ] as const) {
      const client = await node.dial(PORT);
      client.send("ping");
      await until("its connection is there", () => sockets.length > connection);
      answer(sockets[connection], id);
      assert.equal(String(await client.read(4)), "pong");
      clients.push(client);
    }
    const ends = clients.slice(0, 2).map(({ socket }) => outcome(socket));
    for (const { socket } of clients.slice(0, 1)) socket.pause();
    sockets[0]?.write(Buffer.concat(frames));
    assert.equal(await ends[1], "ECONNRESET");
    clients[0]?.socket.resume();
    assert.equal(await ends[0], "ECONNRESET");
    await until("it is closed", () => sockets[0]?.closed === true || sockets[0]?.readableEnded === true);
    sockets[1]?.write(frame(http2.DATA, 0, 1, Buffer.from("00000000060a0466696e65", "hex")));
    assert.equal(String(await clients[2]?.read(4)), "fine");
    clients[2]?.socket.destroy();
    aloneWith(node);
  });
