/** A WebSocket has one close frame for both directions: what our client makes of its own end. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { openWebSocketClient } from "#transport/websocket/client.ts";
import { acceptUpgrade } from "#transport/websocket/server.ts";
import { openTcpOrigin } from "../support/origin.ts";

async function openClient(port: number): Promise<Duplex> {
  const wire = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  await once(wire, "connect");
  const options = { path: "/", host: "x.test", headers: {}, earlyDataBytes: 0, earlyDataHeader: "" };
  return openWebSocketClient(wire, options, AbortSignal.timeout(10_000));
}

async function readAll(stream: Duplex): Promise<string> {
  let text = "";
  for await (const piece of stream) text += String(piece);
  return text;
}

/** Takes a close frame for the end of everything, as the usual libraries do. */
async function serveStrictly(socket: Socket): Promise<void> {
  const stream = await acceptUpgrade(socket, { path: "/", host: null });
  stream.on("error", () => {}).on("end", () => socket.destroy());
  await once(stream, "data");
  for (let turns = 0; turns < 20; turns++) await turn(); // a close frame right behind the request is here by now
  if (!socket.destroyed) stream.end("answer");
}

async function answerTheEnd(socket: Socket): Promise<void> {
  const stream = await acceptUpgrade(socket, { path: "/", host: null });
  let bytes = 0;
  stream.on("data", (piece: Buffer) => (bytes += piece.length));
  await once(stream, "end");
  stream.end(`${bytes} bytes`);
}

test("a client that ends behind its request gets the answer of a server that knows no half-close", async () => {
  await using server = await openTcpOrigin((socket) => void serveStrictly(socket));
  for (let round = 0; round < 50; round++) {
    const stream = await openClient(server.port);
    stream.end("request");
    assert.equal(await readAll(stream), "answer");
  }
});

test("a server that waits for the client's end gets it", async () => {
  await using server = await openTcpOrigin((socket) => void answerTheEnd(socket));
  const stream = await openClient(server.port);
  stream.end("request");
  assert.equal(await readAll(stream), "7 bytes");
});
