/** What a session of AnyTLS that a worker keeps may not do, and what holds for all of them: users, limits, schemes, noise. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { StreamSession } from "#core/session.ts";
import { DEFAULT_SCHEME } from "#protocols/anytls/padding.ts";
import * as wire from "#protocols/anytls/wire.ts";
import { framesOver } from "../support/anytls-frames.ts";
import { openFrameClient, pingPong } from "../support/anytls-sessions.ts";
import { outcome, readAll, roundTrip } from "../support/client.ts";
import type { KeptClients } from "../support/kept-clients.ts";
import { framesTo, nodeOf, openServer, preambleOf, skip } from "../support/kept-sessions.ts";
import { echo, openTcpOrigin, untilHeldUp } from "../support/origin.ts";
import { grantingMeter } from "../support/relayed.ts";
import { until } from "../support/until.ts";

const BOB = [{ id: "bob", credential: "other", flow: null }];
/** Of one thread. */
const REQUEST_SLOTS = 1024;

async function openTls({ port }: KeptClients): Promise<TLSSocket> {
  const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  return socket;
}

test("a limited user moves nothing without leave, and all is counted once", { skip }, async () => {
  await using server = await openServer();
  await using origin = await openTcpOrigin(echo);
  await using node = await nodeOf(server);
  const { meter, reserved } = grantingMeter();
  server.meter = meter;
  await roundTrip(await node.connect(origin.port), 300_000);
  await until("it has ended", () => server.ended.length === 1);
  assert.deepEqual(server.ended[0], reserved);
  assert.deepEqual(reserved, { upload: 300_000, download: 300_000 });
});

test("a removed user's stream ends at once where its origin does not read", { skip }, async () => {
  const accepted = Promise.withResolvers<Socket>();
  await using origin = await openTcpOrigin((socket) => accepted.resolve(socket.pause()));
  await using server = await openServer();
  await using node = await nodeOf(server);
  const stream = await node.connect(origin.port);
  const bytes = randomBytes(24 << 20);
  stream.on("error", () => {}).write(bytes);
  const far = await accepted.promise;
  await untilHeldUp(() => bytes.length - stream.writableLength);
  server.inbound.replaceUsers(BOB);
  await until("it has ended", () => server.ended.length === 1);
  assert.equal(await outcome(far.resume()), "ECONNRESET");
});

test("nothing is dialled for a user who is removed while it is decided where to", { skip }, async () => {
  let accepted = 0;
  await using origin = await openTcpOrigin(() => accepted++);
  await using server = await openServer();
  let asked: StreamSession[] = [];
  server.instead = (session) => void asked.push(session);
  const client = await framesTo(server);
  for (const id of [1, 2, 3]) client.open(id, origin.port);
  await until("they have been asked for", () => asked.length === 3);
  const gone = outcome(client.socket);
  server.inbound.replaceUsers(BOB);
  assert.equal(await gone, "ECONNRESET");
  const [first, second, third] = asked;
  const plan = {
    ip: origin.destination.ip,
    port: origin.port,
    routingMark: 0,
    interfaceName: "",
    probes: null,
  };
  const worker = first?.offloaded?.worker;
  assert.ok(worker !== undefined && plan.ip !== null);
  const ended = Promise.withResolvers<void>();
  worker.events = { dialled: assert.fail, failed: () => assert.fail(), ended: ended.resolve };
  worker.dial({ ...plan, ip: plan.ip, timeoutMs: 5_000, isFirstOfMany: false }, Buffer.alloc(0), false);
  await ended.promise;
  assert.equal(second?.stream.destroyed, true);
  third?.reply(new Error("too late"));
  asked = [];
  server.instead = null;
  const bob = await openFrameClient(server.port, preambleOf("other"));
  bob.open(1, origin.port);
  await bob.expect(wire.SYNACK, 1);
  assert.equal(accepted, 1);
  bob.socket.destroy();
});

test("who could not ask before its session ended asks no more", { skip }, async () => {
  await using server = await openServer();
  await using origin = await openTcpOrigin(echo);
  server.instead = () => {};
  const ann = await framesTo(server);
  for (let id = 1; id <= REQUEST_SLOTS - 24; id++) ann.open(id, origin.port);
  await until("they have been asked for", () => server.sessions.length === REQUEST_SLOTS - 24);
  const bob = await openFrameClient(server.port, preambleOf("other"));
  for (let id = 1; id <= 40; id++) bob.open(id, origin.port);
  await until("all slots are taken", () => server.sessions.length === REQUEST_SLOTS);
  await pingPong(bob);
  const asked = server.sessions.slice();
  server.inbound.replaceUsers([{ id: "ann", credential: "letmein", flow: null }]);
  for (const session of asked) session.offloaded?.worker.reset();
  server.instead = null;
  const next = await framesTo(server);
  next.open(1, origin.port);
  await next.expect(wire.SYNACK, 1);
  assert.equal(server.sessions.length, REQUEST_SLOTS + 1);
  for (const { socket } of [ann, next]) socket.destroy();
});

test("a session has so many streams, and one more is refused alone", { skip }, async () => {
  await using server = await openServer();
  await using origin = await openTcpOrigin(echo);
  const client = await framesTo(server);
  for (let id = 1; id < 1024; id++) client.send(wire.encodeFrame(wire.SYN, id));
  client.open(1024, origin.port);
  await client.expect(wire.SYNACK, 1024);
  client.open(1025, origin.port);
  const { command, streamId, data } = await client.next();
  assert.deepEqual([command, streamId, data.toString()], [wire.SYNACK, 1025, "too many streams"]);
  await client.expect(wire.FIN, 1025);
  client.send(wire.encodeFrame(wire.FIN, 1));
  client.open(1026, origin.port);
  await client.expect(wire.SYNACK, 1026);
  client.socket.destroy();
});

test("a stream that has ended counts until its dial has, too", { skip }, async () => {
  await using server = await openServer();
  await using origin = await openTcpOrigin(echo);
  server.instead = () => {};
  const client = await framesTo(server);
  for (let id = 1; id <= 1024; id++) {
    client.open(id, origin.port);
    client.send(wire.encodeFrame(wire.FIN, id));
  }
  await until("they have been asked for", () => server.sessions.length === 1024);
  client.open(1025, origin.port);
  const { streamId, data } = await client.next();
  assert.deepEqual([streamId, data.toString()], [1025, "too many streams"]);
  await client.expect(wire.FIN, 1025);
  server.instead = null;
  server.sessions[0]?.offloaded?.worker.reset();
  for (let id = 1026, isRefused = true; isRefused; id++) {
    client.open(id, origin.port);
    const answer = await client.next();
    assert.equal(answer.streamId, id);
    isRefused = answer.data.length > 0;
    if (isRefused) await client.expect(wire.FIN, id);
  }
  client.socket.destroy();
});

test("who has another scheme is told this one first, and our node takes it", { skip }, async () => {
  const text = "stop=2\n0=20-20\n1=50-60";
  await using server = await openServer({ "padding-scheme": text });
  await using origin = await openTcpOrigin(echo);
  const socket = await openTls(server);
  const frames = framesOver(socket);
  const settings = wire.encodeSettings({ v: "2", client: "test", "padding-md5": DEFAULT_SCHEME.md5 });
  frames.send(preambleOf("letmein"), wire.encodeFrame(wire.SETTINGS, 0, settings));
  const { command, data } = await frames.next();
  assert.deepEqual([command, data.toString()], [wire.UPDATE_SCHEME, text]);
  await frames.expect(wire.SERVER_SETTINGS, 0);
  socket.destroy();
  await using node = await nodeOf(server);
  for (const bytes of [100, 20_000]) await roundTrip(await node.connect(origin.port), bytes);
});

test("a client of the first version is answered nothing", { skip }, async () => {
  await using server = await openServer();
  await using origin = await openTcpOrigin(echo);
  const socket = await openTls(server);
  const frames = framesOver(socket);
  const settings = wire.encodeSettings({ client: "old", "padding-md5": DEFAULT_SCHEME.md5 });
  const target = Buffer.from([1, 127, 0, 0, 1, origin.port >> 8, origin.port & 255]);
  frames.send(preambleOf("letmein"), wire.encodeFrame(wire.SETTINGS, 0, settings));
  frames.send(
    wire.encodeFrame(wire.SYN, 1),
    wire.encodeData(1, target),
    wire.encodeData(1, Buffer.from("hello")),
  );
  assert.equal((await frames.untilGot(1, 5)).toString(), "hello");
  frames.send(wire.encodeFrame(wire.HEARTBEAT_REQUEST, 9));
  await frames.expect(wire.HEARTBEAT_RESPONSE, 9); // and nothing before it
  socket.destroy();
});

test("an unknown client gets the web server behind, with every byte", { skip }, async () => {
  await using web = await openTcpOrigin((socket) => {
    socket.once("data", (bytes: Buffer) => socket.end(`web saw ${bytes.length}`));
  });
  await using server = await openServer({ fallbacks: [{ dest: `127.0.0.1:${web.port}` }] });
  const socket = await openTls(server);
  socket.write(Buffer.concat([preambleOf("wrong"), Buffer.alloc(36)]));
  assert.equal((await readAll(socket)).toString(), "web saw 100");
  socket.destroy();
});

test("whatever frames a client makes up, the others are served", { skip }, async () => {
  await using server = await openServer();
  await using origin = await openTcpOrigin(echo);
  const steady = await framesTo(server);
  const settings = wire.encodeFrame(wire.SETTINGS, 0, wire.encodeSettings({ v: "2", client: "x" }));
  const anyFrame = (): Buffer => {
    const [command = 0, id = 0, ...more] = randomBytes(4);
    const data = randomBytes(((more[0] ?? 0) << 3) + (more[1] ?? 0));
    return wire.encodeFrame(command % 12, id % 4, command % 12 === wire.ALERT ? Buffer.alloc(0) : data);
  };
  for (let round = 0; round < 30; round++) {
    const socket = await openTls(server);
    socket.resume();
    const noise = round % 3 === 0 ? [randomBytes(20_000)] : Array.from({ length: 40 }, anyFrame);
    socket.write(Buffer.concat([preambleOf("letmein"), settings, ...noise]));
    if (round % 2 === 0) socket.end();
    else socket.write(Buffer.concat(noise), () => socket.destroy());
    steady.open(round + 1, origin.port);
    await steady.expect(wire.SYNACK, round + 1);
    steady.send(wire.encodeData(round + 1, Buffer.from("still")));
    assert.equal((await steady.untilGot(round + 1, 5)).toString(), "still");
  }
  steady.socket.destroy();
});
