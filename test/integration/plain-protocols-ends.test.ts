/** How clients of plain requests end: by their side only, in the middle, without a word; and that silence is bounded. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import type { AcceptedConnection } from "#core/accepted.ts";
import { type PlainDeadlines, PlainProxy } from "#protocols/http/plain.ts";
import { acceptedStream } from "../support/accepted.ts";
import { readAll } from "../support/client.ts";
import { directAccept } from "../support/direct-accept.ts";
import { headOrigin, NO_LENGTH } from "../support/head-origin.ts";
import { openInboundEnv } from "../support/inbound-env.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { openRawClient, type RawClient } from "../support/raw-client.ts";
import { nativeTls as native } from "../support/native-tls.ts";

const PATIENT: PlainDeadlines = { headMs: 30_000, idleMs: 60_000, checkMs: 5_000 };
const HASTY: PlainDeadlines = { headMs: 100, idleMs: 100, checkMs: 50 };

/** What clients see of a listener: the layer that is taken off before the requests. */
const LAYERS = [
  { name: "TCP", tls: null },
  { name: "node:tls", tls: await openListenerTls() },
  ...(native === null ? [] : [{ name: "native TLS", tls: await openListenerTls(native) }]),
];
type Layer = (typeof LAYERS)[number];

interface Opened extends AsyncDisposable {
  dial(): Promise<Duplex>;
  raw(): Promise<RawClient>;
}

async function openPlain({ tls }: Layer, deadlines = PATIENT): Promise<Opened> {
  const env = openInboundEnv({ accept: directAccept().accept });
  const plain = new PlainProxy(env, deadlines);
  const take = async (accepted: AcceptedConnection): Promise<void> => {
    const stream = tls === null ? accepted.stream() : (await tls.acceptConnection(accepted)).stream;
    plain.take({ connection: acceptedStream(stream), accounts: null });
  };
  const onAccepted = (accepted: AcceptedConnection): void => void take(accepted);
  const [endpoint] = await env.listenTcp({ handshake: "unknown", onAccepted });
  const { port } = endpoint as { port: number };
  return {
    raw: () => openRawClient(port),
    async dial() {
      const { socket } = await openRawClient(port);
      socket.removeAllListeners("data");
      if (tls === null) return socket;
      const client = connectTls({ socket, rejectUnauthorized: false, allowHalfOpen: true } as object);
      await once(client, "secureConnect");
      return client;
    },
    async [Symbol.asyncDispose]() {
      plain[Symbol.dispose]();
      await env[Symbol.asyncDispose]();
    },
  };
}

const get = (port: number, path = "/") => `GET http://127.0.0.1:${port}${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

for (const layer of LAYERS) {
  test(`${layer.name}: a client that has ended its side gets every answer to its end`, async () => {
    const body = "x".repeat(1 << 20);
    await using origin = await headOrigin(
      (head) =>
        `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nX-Path: ${head.split(" ")[1]}\r\n\r\n${body}`,
    );
    await using opened = await openPlain(layer);
    const client = await opened.dial();
    client.end(get(origin.port, "/1") + get(origin.port, "/2"));
    const answers = String(await readAll(client));
    assert.deepEqual(answers.match(/X-Path: .*/g), ["X-Path: /1", "X-Path: /2"]);
    assert.equal(answers.split(body).length - 1, 2);
  });

  test(`${layer.name}: one that has ended and whose origin is silent is given up, its request with it`, async () => {
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    await using origin = await headOrigin((_head, socket) => {
      socket.on("close", () => resolve());
      return "";
    });
    await using opened = await openPlain(layer, HASTY);
    const client = await opened.dial();
    client.on("error", () => {}).end(get(origin.port));
    await gone;
    client.destroy();
  });

  test(`${layer.name}: one that asks nothing more is closed`, async () => {
    await using origin = await headOrigin(() => NO_LENGTH);
    await using opened = await openPlain(layer, HASTY);
    const client = await opened.dial();
    client.on("error", () => {}).write(get(origin.port));
    const ended = once(client.resume(), "end");
    await ended;
    client.destroy();
  });
}

const [PLAIN] = LAYERS as [Layer];

test("one that has gone for good takes its request along when the origin speaks", async () => {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<Socket>();
  await using origin = await headOrigin((_head, socket) => {
    socket.on("close", () => resolve());
    onAsked(socket);
    return "";
  });
  await using opened = await openPlain(PLAIN);
  const client = await opened.dial();
  client.write(get(origin.port));
  const socket = await asked;
  client.destroy();
  socket.write("HTTP/1.1 200 OK\r\n\r\n");
  const talk = setInterval(() => socket.write("more"), 5);
  await gone;
  clearInterval(talk);
});

for (const [what, rest] of [
  ["a body that is no chunk", "zz\r\n"],
  ["a body that is cut off", null],
] as const)
  test(`${what} never puts an answer of ours into the middle of the origin's`, async () => {
    await using origin = await headOrigin(() => "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin");
    await using opened = await openPlain(PLAIN);
    using client = await opened.raw();
    const head = `POST http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
    client.send(`${head}1\r\na\r\n`);
    await client.until("begin");
    if (rest === null) client.socket.end();
    else client.send(rest);
    assert.equal(String(await client.rest()), "");
  });
