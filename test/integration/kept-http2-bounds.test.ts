/** What a connection of HTTP/2 that a worker keeps may not do, most of it before any user has authenticated. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import type { StreamSession } from "#core/session.ts";
import * as http2 from "#transport/http2/frames.ts";
import { encodeSection } from "#transport/http2/hpack.ts";
import { outcome } from "../support/client.ts";
import type { KeptClients } from "../support/kept-clients.ts";
import {
  type FrameClient,
  framesTo,
  type Http2Kind,
  KINDS,
  message,
  openServer,
  REQUEST,
  requestFrame,
  vlessTo,
} from "../support/kept-http2.ts";
import { skip } from "../support/kept-sessions.ts";
import { echo, openTcpOrigin, type Origin } from "../support/origin.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const PLAIN = KINDS["vless over grpc, plain"] as Http2Kind;
const NOTHING = Buffer.alloc(0);
const MOST_STREAMS = 1024;

const descriptors = (): number => readdirSync("/proc/self/fd").length;
const data = (id: number, bytes: Uint8Array, flags = 0): Buffer =>
  http2.encodeFrame(http2.DATA, flags, id, bytes);
const idOf = (nth: number): number => 1 + 2 * nth;

async function isServed(client: FrameClient, id: number, port: number): Promise<void> {
  client.open(id, Buffer.concat([vlessTo(port), Buffer.from("still")]));
  assert.equal(String(await client.got(id, 7)).slice(2), "still");
}

interface World extends AsyncDisposable {
  readonly server: KeptClients;
  readonly origin: Origin;
  /** A client that was there before. */
  readonly steady: FrameClient;
  attack(): Promise<FrameClient>;
  /** The steady client, and another one, are served; the attackers are gone, and what they had is free. */
  isWell(): Promise<void>;
}

async function openWorld(): Promise<World> {
  await using undo = new AsyncDisposableStack();
  const server = undo.use(await openServer(PLAIN));
  const origin = undo.use(await openTcpOrigin(echo));
  const steady = undo.adopt(await framesTo(PLAIN, server.port), ({ socket }) => void socket.destroy());
  await isServed(steady, 1, origin.port);
  const before = descriptors();
  const attackers: FrameClient[] = [];
  let streams = 0;
  const opened = undo.move();
  return {
    server,
    origin,
    steady,
    async attack() {
      const client = await framesTo(PLAIN, server.port);
      attackers.push(client);
      return client;
    },
    async isWell() {
      await isServed(steady, idOf(++streams), origin.port);
      steady.say(idOf(streams), "", http2.END_STREAM);
      await steady.isOver(idOf(streams));
      const other = await framesTo(PLAIN, server.port);
      await isServed(other, 1, origin.port);
      for (const { socket } of [other, ...attackers.splice(0)]) socket.destroy();
      await until("what they had is free", () => descriptors() <= before);
      await until("no client is waited for", () => server.unauthenticated.size === 0);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

test("connections without streams are clients that are not known", { skip }, async () => {
  await using world = await openWorld();
  for (let at = 0; at < 100; at++) await world.attack();
  await until("they count", () => world.server.unauthenticated.size === 100);
  await world.isWell();
});

test("of streams that do not say enough so many are taken, and the rest are ended", { skip }, async () => {
  await using world = await openWorld();
  const before = descriptors();
  const client = await world.attack();
  client.send(...Array.from({ length: MOST_STREAMS }, (_, at) => requestFrame(idOf(at))));
  client.send(...Array.from({ length: MOST_STREAMS }, (_, at) => data(idOf(at), message(Buffer.of(0)))));
  const ended = (): number =>
    Array.from({ length: MOST_STREAMS }, (_, at) => client.heard(idOf(at)).resetBy).filter(
      (code) => code !== null,
    ).length;
  await until("the others are ended", () => ended() === MOST_STREAMS - 16);
  assert.equal(world.server.unauthenticated.size, 17);
  assert.ok(descriptors() - before < 40, `${descriptors() - before}`);
  await world.isWell();
});

test("streams that say nothing are so many of a source, in all of its connections", { skip }, async () => {
  await using world = await openWorld();
  const first = await world.attack();
  await isServed(first, 1, world.origin.port);
  for (const nth of Array.from({ length: 500 }, (_, at) => 1 + at)) first.send(requestFrame(idOf(nth)));
  first.send(http2.encodeFrame(http2.PING, 0, 0, Buffer.alloc(8)));
  await until("all have been heard", () => first.others.some(({ type }) => type === http2.PING));
  for (let at = 0; at < 8; at++) {
    const next = await world.attack();
    next.send(...Array.from({ length: MOST_STREAMS }, (_, nth) => requestFrame(idOf(nth))));
  }
  for (const nth of [1, 2, 500]) assert.equal(await first.isReset(idOf(nth)), http2.CANCEL);
  first.say(1, "goes on");
  assert.equal(String(await first.got(1, 7)), "goes on");
  await world.isWell();
});

test("one stream more than there may be is refused alone", { skip }, async () => {
  await using world = await openWorld();
  const client = await world.attack();
  client.send(...Array.from({ length: MOST_STREAMS + 3 }, (_, at) => requestFrame(idOf(at))));
  for (const nth of [0, 1, 2])
    assert.equal(await client.isReset(idOf(MOST_STREAMS + nth)), http2.REFUSED_STREAM);
  client.send(http2.encodeNumber(http2.RST_STREAM, 1, http2.CANCEL));
  await isServed(client, idOf(MOST_STREAMS + 3), world.origin.port);
  await world.isWell();
});

test("streams that are opened and reset without an end leave nothing behind", { skip }, async () => {
  await using world = await openWorld();
  const client = await world.attack();
  const header = message(vlessTo(world.origin.port));
  for (let round = 0; round < 20; round++) {
    const frames = Array.from({ length: 200 }, (_, at) => {
      const id = idOf(round * 200 + at);
      const said = [NOTHING, data(id, message(Buffer.of(0))), data(id, header)][at % 3] as Buffer;
      return Buffer.concat([
        requestFrame(id),
        said,
        http2.encodeNumber(http2.RST_STREAM, id, at % 2 === 0 ? http2.CANCEL : http2.NO_ERROR),
      ]);
    });
    client.send(...frames);
    await new Promise((resolve) => setImmediate(resolve));
  }
  // Streams that are reset count until their dials have ended.
  let nth = 4000;
  for (let isTaken = false; !isTaken;) {
    const id = idOf(nth++);
    client.open(id, Buffer.concat([vlessTo(world.origin.port), Buffer.from("still")]));
    await until(
      "it is answered",
      () => client.heard(id).data.length === 7 || client.heard(id).resetBy !== null,
    );
    isTaken = client.heard(id).resetBy === null;
  }
  await world.isWell();
});

test("a request that is reset while it is decided is not dialled", { skip }, async () => {
  await using world = await openWorld();
  const asked: StreamSession[] = [];
  world.server.instead = (session) => void asked.push(session);
  const client = await world.attack();
  for (const id of [1, 3]) client.open(id, vlessTo(world.origin.port));
  await until("they have been asked for", () => asked.length === 2);
  for (const id of [1, 3]) client.send(http2.encodeNumber(http2.RST_STREAM, id, http2.CANCEL));
  client.send(http2.encodeFrame(http2.PING, 0, 0, Buffer.alloc(8)));
  await until("it is answered", () => client.others.some(({ type }) => type === http2.PING));
  const [first, second] = asked;
  const { worker } = first?.offloaded ?? assert.fail();
  const ended = Promise.withResolvers<void>();
  worker.events = { dialled: assert.fail, failed: () => ended.resolve(), ended: ended.resolve };
  const plan = { ip: "127.0.0.1" as never, port: world.origin.port, routingMark: 0, interfaceName: "" };
  worker.dial({ ...plan, probes: null, timeoutMs: 5_000, isFirstOfMany: false }, NOTHING, false);
  await ended.promise;
  const over = outcome(second?.stream.resume() ?? assert.fail());
  await over;
  world.server.instead = null;
  await isServed(client, 5, world.origin.port);
  await world.isWell();
});

test("who asks without reading is cut off", { skip }, async () => {
  const floods: readonly Buffer[] = [
    http2.encodeFrame(http2.PING, 0, 0, Buffer.alloc(8)),
    http2.encodeSettings([]),
    requestFrame(1, REQUEST.with(3, [":path", "/none"])),
  ];
  for (const [nth, frame] of floods.entries()) {
    await using world = await openWorld();
    const client = await world.attack();
    client.socket.pause();
    let id = 1;
    const next = (): Buffer =>
      nth < 2 ? frame : requestFrame((id += 2), REQUEST.with(3, [":path", "/none"]));
    const flood = setInterval(() => {
      if (client.socket.writableLength < 1 << 20) client.send(...Array.from({ length: 20_000 }, next));
    }, 5);
    // The kernel's buffers take a while.
    await until("it is cut off", () => client.socket.destroyed || client.isClosed);
    clearInterval(flood);
    await world.isWell();
  }
});

test("floods that ask for nothing hold up no other client", { skip }, async () => {
  const floods: readonly (readonly [string, Buffer])[] = [
    ["windows of the connection", http2.encodeNumber(http2.WINDOW_UPDATE, 0, 1)],
    ["windows of a stream", http2.encodeNumber(http2.WINDOW_UPDATE, 1, 1)],
    ["empty data", data(1, NOTHING)],
    ["empty messages", data(1, Buffer.alloc(5))],
    ["what is not known", http2.encodeFrame(77, 0, 0, NOTHING)],
    [
      "windows in settings",
      http2.encodeSettings(Array.from({ length: 100 }, (_, at) => [4, 65_535 - (at % 2)])),
    ],
  ];
  await using world = await openWorld();
  for (const [name, frame] of floods) {
    const client = await world.attack();
    client.send(...Array.from({ length: 1000 }, (_, at) => requestFrame(idOf(at))));
    const all = Buffer.alloc((1 << 20) - ((1 << 20) % frame.length), frame);
    client.socket.write(all);
    const startMs = performance.now();
    await isServed(client, idOf(1000), world.origin.port);
    assert.ok(performance.now() - startMs < 5_000, `${name}: ${performance.now() - startMs} ms`);
    await world.isWell();
  }
});

const section = encodeSection(REQUEST, false);
const opened = (...frames: readonly Uint8Array[]): Buffer => Buffer.concat([requestFrame(1), ...frames]);
const long = http2.encodeFrame(http2.CONTINUATION, 0, 1, Buffer.alloc(16_000, 0x82));
const BROKEN: Readonly<Record<string, Uint8Array>> = {
  "a section without an end": Buffer.concat([
    http2.encodeFrame(http2.HEADERS, 0, 1, section),
    ...Array.from({ length: 10 }, () => long),
  ]),
  "a section in empty pieces": Buffer.concat([
    http2.encodeFrame(http2.HEADERS, 0, 1, section),
    Buffer.alloc(9 * 10_000, http2.encodeFrame(http2.CONTINUATION, 0, 1, NOTHING)),
  ]),
  "a section with other frames within": Buffer.concat([
    http2.encodeFrame(http2.HEADERS, 0, 1, section),
    data(1, Buffer.of(1)),
  ]),
  "one of another stream": Buffer.concat([
    http2.encodeFrame(http2.HEADERS, 0, 1, section),
    http2.encodeFrame(http2.CONTINUATION, http2.END_HEADERS, 3, NOTHING),
  ]),
  "a continuation of nothing": http2.encodeFrame(http2.CONTINUATION, http2.END_HEADERS, 1, section),
  "a bomb": http2.encodeFrame(
    http2.HEADERS,
    http2.END_HEADERS,
    1,
    Buffer.concat([
      Buffer.from([0x40, 1, 0x78, 0x7f, 0x81, 0x1e]), // x: 4096 - 32 - 1 bytes or so
      Buffer.alloc(127 + 0x1e * 128 + 1, 0x61),
      Buffer.alloc(12_000, 0xbe),
    ]),
  ),
  "an index of nothing": http2.encodeFrame(http2.HEADERS, http2.END_HEADERS, 1, Buffer.of(0xff, 0x80, 0x01)),
  "padding without a frame": http2.encodeFrame(http2.HEADERS, http2.END_HEADERS | http2.PADDED, 1, NOTHING),
  "an even number": requestFrame(2),
  "no number": requestFrame(0),
  "a falling number": Buffer.concat([requestFrame(5), requestFrame(3)]),
  "fields for an open stream": opened(requestFrame(1)),
  "data of the connection": data(0, Buffer.of(1)),
  "more padding than data": opened(data(1, Buffer.of(9, 1), http2.PADDED)),
  "a frame that is too long": opened(Buffer.from([0, 0x40, 1, 0, 0, 0, 0, 0, 1])),
  "a window of nothing": http2.encodeNumber(http2.WINDOW_UPDATE, 0, 0),
  "a window that is too large": Buffer.concat([
    http2.encodeNumber(http2.WINDOW_UPDATE, 0, 0x7fff_ffff),
    http2.encodeNumber(http2.WINDOW_UPDATE, 0, 0x7fff_ffff),
  ]),
  "a stream's window that is too large": opened(http2.encodeNumber(http2.WINDOW_UPDATE, 1, 0x7fff_ffff)),
  "settings of no size": http2.encodeFrame(http2.SETTINGS, 0, 0, Buffer.alloc(5)),
  "settings of a stream": http2.encodeFrame(http2.SETTINGS, 0, 1, NOTHING),
  "a first window that is too large": http2.encodeSettings([[http2.INITIAL_WINDOW_SIZE, 0xffff_ffff]]),
  "a short ping": http2.encodeFrame(http2.PING, 0, 0, Buffer.alloc(7)),
  "a short reset": opened(http2.encodeFrame(http2.RST_STREAM, 0, 1, Buffer.alloc(3))),
  "a promise": http2.encodeFrame(http2.PUSH_PROMISE, 0, 1, Buffer.alloc(4)),
};

test("who breaks the protocol loses the connection alone", { skip }, async () => {
  await using world = await openWorld();
  for (const [name, bytes] of Object.entries(BROKEN)) {
    const client = await world.attack();
    client.send(bytes);
    await until(`${name}: it is told`, () => client.others.some(({ type }) => type === http2.GOAWAY));
    const said = client.others.find(({ type }) => type === http2.GOAWAY);
    assert.equal(said?.payload.readUInt32BE(4), http2.PROTOCOL_ERROR, name);
    await until(`${name}: it is closed`, () => client.isClosed);
  }
  await world.isWell();
});

test("data beyond the stream's window ends the connection", { skip }, async () => {
  await using world = await openWorld();
  const paused = await openTcpOrigin((socket) => void socket.pause());
  const client = await world.attack();
  client.open(1, vlessTo(paused.port));
  const piece = randomBytes(16_000);
  for (let sent = 0; sent < 24 << 20 && !client.isClosed; sent += piece.length) {
    client.say(1, piece);
    if (client.socket.writableLength > 1 << 20) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await client.closed();
  await paused[Symbol.asyncDispose]();
  await world.isWell();
});

test("connections that are cut off at any moment leave nothing behind", { skip }, async () => {
  await using world = await openWorld();
  const header = message(vlessTo(world.origin.port));
  for (let round = 0; round < 40; round++) {
    const client = await world.attack();
    const frames = [
      requestFrame(1),
      data(1, header),
      requestFrame(3),
      data(3, header.subarray(0, 20)),
      data(1, message(randomBytes(5000))),
    ];
    client.send(...frames.slice(0, round % (frames.length + 1)));
    if (round % 4 === 0) client.socket.end();
    else if (round % 4 === 1) client.socket.resetAndDestroy();
    else if (round % 4 === 2) setImmediate(() => client.socket.destroy());
    else setTimeout(() => client.socket.end(), 5);
  }
  await world.isWell();
});

test(
  "a worker that dies takes its connections along, and what the event loop served of them",
  { skip },
  async () => {
    using killer = new WorkerKiller();
    await using world = await openWorld();
    const { server, origin } = world;
    const taken = Promise.withResolvers<string | null>();
    server.instead = (session) => {
      session.reply(null);
      taken.resolve(outcome(session.stream.resume()));
    };
    world.steady.open(3, vlessTo(origin.port));
    const silent = await world.attack();
    silent.open(1, Buffer.of(0)); // it is taken, and still says nothing
    await until("it is taken", () => server.unauthenticated.size === 2);
    await killer.kill("relay");
    await world.steady.closed();
    await silent.closed();
    await until("its stream has ended", () => server.ended.length === 1);
    await taken.promise;
    await until("no client is waited for", () => server.unauthenticated.size === 0);
  },
);
