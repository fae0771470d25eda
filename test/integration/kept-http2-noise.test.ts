/** Whatever a client makes up, in a connection of HTTP/2 that a worker keeps, and how it may begin. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import * as http2 from "#transport/http2/frames.ts";
import {
  framesTo,
  type Http2Kind,
  KINDS,
  message,
  openFrames,
  openServer,
  requestFrame,
  vlessTo,
} from "../support/kept-http2.ts";
import { skip } from "../support/kept-sessions.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const PLAIN = KINDS["vless over grpc, plain"] as Http2Kind;

/** Of a few streams, most of it what clients do say. */
function anyFrame(port: number): Buffer {
  const [kind = 0, flags = 0, nth = 0, size = 0] = randomBytes(4);
  const id = 1 + 2 * (nth % 8);
  if (kind < 60) return requestFrame(id);
  if (kind < 120) return http2.encodeFrame(http2.DATA, flags & 9, id, message(vlessTo(port)));
  if (kind < 150) return http2.encodeFrame(http2.DATA, flags & 1, id, message(randomBytes(size * 8)));
  if (kind < 170) return http2.encodeNumber(http2.RST_STREAM, id, flags % 9);
  if (kind < 190) return http2.encodeNumber(http2.WINDOW_UPDATE, nth % 3 === 0 ? 0 : id, 1 + size);
  if (kind < 200) return http2.encodeSettings([[http2.INITIAL_WINDOW_SIZE, size << (flags % 16)]]);
  if (kind < 210) return http2.encodeFrame(http2.PING, flags & 1, 0, randomBytes(8));
  if (kind < 215) return http2.encodeGoAway(nth, flags);
  return http2.encodeFrame(kind % 12, flags, nth % 4 === 0 ? 0 : id, randomBytes(size));
}

test("others are served", { skip, timeout: 120_000 }, async () => {
  using killer = new WorkerKiller();
  await using server = await openServer(PLAIN);
  await using origin = await openTcpOrigin(echo);
  const steady = await framesTo(PLAIN, server.port);
  for (let round = 0; round < 60; round++) {
    const client = await framesTo(PLAIN, server.port);
    const isBytes = round % 4 === 3;
    // The first ones are in order: later ones are of streams that are there.
    const opened = [1, 3].flatMap((id) => [
      requestFrame(id),
      http2.encodeFrame(http2.DATA, 0, id, message(vlessTo(origin.port))),
    ]);
    client.send(...opened.slice(0, round % 5));
    for (let piece = 0; piece < 10; piece++)
      client.send(
        ...(isBytes ? [randomBytes(3000)] : Array.from({ length: 6 }, () => anyFrame(origin.port))),
      );
    if (round % 2 === 0) client.socket.end();
    else setTimeout(() => client.socket.destroy(), round % 7);
    const id = 1 + 2 * round;
    steady.open(id, Buffer.concat([vlessTo(origin.port), Buffer.from("still")]));
    assert.equal(String(await steady.got(id, 7)).slice(2), "still");
    steady.say(id, "", http2.END_STREAM);
  }
  steady.socket.destroy();
  await until(
    "all have ended",
    () => server.ended.length === server.kept.length && server.unauthenticated.size === 0,
  );
  assert.equal(killer.count("relay"), 1);
});

for (const name of ["plain", "tls", "reality"].map((security) => `vless over grpc, ${security}`))
  test(`${name}: a preface in pieces is the event loop's, and whole it is not`, { skip }, async () => {
    const kind = KINDS[name] as Http2Kind;
    await using server = await openServer(kind);
    await using origin = await openTcpOrigin(echo);
    const begin = Buffer.concat([http2.CLIENT_PREFACE, http2.encodeSettings([])]);
    for (const cut of [1, 14, 23, 24, 30]) {
      const client = await openFrames(kind, server.port);
      client.send(begin.subarray(0, cut));
      await delay(30);
      client.send(begin.subarray(cut));
      client.open(1, Buffer.concat([vlessTo(origin.port), Buffer.from("still")]));
      assert.equal(String(await client.got(1, 7)).slice(2), "still", `cut at ${cut}`);
      client.socket.destroy();
    }
    assert.deepEqual([server.sessions.length, server.kept.length], [5, 2]);
    const other = await openFrames(kind, server.port);
    other.send(Buffer.from("GET / HTTP/1.1\r\nHost: server.test\r\n\r\n"));
    await other.closed();
    const silent = await openFrames(kind, server.port);
    silent.socket.end();
    await silent.closed();
    await until("none is waited for", () => server.unauthenticated.size === 0);
  });

test(
  "what the event loop reads of a kept client has its own faults, and the name in the handshake",
  { skip },
  async () => {
    const kind = KINDS["trojan over grpc, tls"] as Http2Kind;
    const got: string[] = [];
    const open = (name: string) => openTcpOrigin((socket) => void socket.once("data", () => got.push(name)));
    await using named = await open("by name");
    await using other = await open("without");
    const fallbacks = [
      { name: "server.test", dest: `127.0.0.1:${named.port}` },
      { dest: `127.0.0.1:${other.port}` },
    ];
    await using server = await openServer(kind, { fallbacks });
    const client = await openFrames({ ...kind, serverName: "server.test" }, server.port);
    client.send(http2.CLIENT_PREFACE.subarray(0, 10));
    await delay(30);
    client.send(http2.CLIENT_PREFACE.subarray(10), http2.encodeSettings([]));
    const noise = "GET / HTTP/1.1\r\nHost: server.test\r\nAccept: everything that there is\r\n\r\n";
    client.open(1, Buffer.from(noise));
    await until("the site has it", () => got.length === 1);
    assert.deepEqual(got, ["by name"]);
    // A handshake that is none, and behind it what is no message: an error of its stream while it is refused.
    const broken = Buffer.concat([message(Buffer.from(noise)), Buffer.of(1, 0, 0, 0, 0)]);
    for (const id of [3, 5, 7]) client.send(requestFrame(id), http2.encodeFrame(http2.DATA, 0, id, broken));
    for (const id of [3, 5, 7])
      await until(`${id} is over`, () => client.heard(id).resetBy !== null || client.heard(id).isOver);
    client.socket.destroy();
  },
);
