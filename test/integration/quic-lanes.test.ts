/** Several threads of QUIC at one port: who reaches which, and what a client keeps that moves to another address. */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { after, describe, test } from "node:test";
import { toDestination } from "#net/address/ip.ts";
import { outcome } from "../support/client.ts";
import { echo } from "../support/echo-session.ts";
import { openListener, openNode } from "../support/hysteria2-listener.ts";
import { openQuicEngine } from "../support/quic-engine.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const TO = toDestination("origin.test", 80);
const HOST = "127.0.0.1";
const context = () => ({ signal: AbortSignal.timeout(10_000), metadata: null });
const engine = SKIP === false ? await openQuicEngine(3) : null;
after(() => engine?.[Symbol.asyncDispose]());

/** Clients that showed their password, by thread. */
const settled = [0, 0, 0];
for (const [index, { outbox }] of engine?.threads.entries() ?? []) {
  const put = outbox.put.bind(outbox);
  outbox.put = (message, given) => {
    if (message.op === "settle") settled[index] = (settled[index] ?? 0) + 1;
    put(message, given);
  };
}

async function bound(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(0, HOST);
  await once(socket, "listening");
  return socket;
}

/** A router with address translation before one client: `move` gives the client another port. */
async function openRouter(serverPort: number) {
  const inside = await bound();
  const sockets: Socket[] = [];
  let client = 0;
  const move = async (): Promise<void> => {
    const outside = await bound();
    outside.on("message", (bytes) => inside.send(bytes, client, HOST));
    sockets.push(outside);
  };
  await move();
  inside.on("message", (bytes, { port }) => {
    client = port;
    sockets.at(-1)?.send(bytes, serverPort, HOST);
  });
  return {
    port: inside.address().port,
    move,
    [Symbol.dispose]: () => [inside, ...sockets].forEach((socket) => socket.close()),
  };
}

async function asks(stream: Duplex, text: string): Promise<void> {
  stream.write(text);
  const [answer] = await once(stream, "data");
  assert.equal(String(answer), text);
}

describe("threads of QUIC at one port", { skip: SKIP }, () => {
  test("share the clients, each of which stays with its thread when it moves", async () => {
    await using listener = await openListener(echo, {}, undefined, engine?.memory);
    settled.fill(0);
    await using undo = new AsyncDisposableStack();
    const clients = await Promise.all(
      Array.from({ length: 24 }, async () => {
        const router = undo.use(await openRouter(listener.port));
        const node = undo.use(await openNode(router.port));
        const stream = await node.connect(TO, context());
        await asks(stream, "before");
        return { router, stream };
      }),
    );
    assert.equal(
      settled.reduce((sum, count) => sum + count, 0),
      24,
    );
    assert.ok(
      settled.every((count) => count > 0),
      `${settled.join(" ")}`,
    );
    for (let round = 0; round < 3; round++) {
      await Promise.all(clients.map(({ router }) => router.move()));
      await Promise.all(clients.map(({ stream }) => asks(stream, `behind move ${round}`)));
    }
    for (const { stream } of clients) stream.destroy();
  });

  test("leave a listener with a disguise to the first, for no id can be seen there", async () => {
    const obfs = { obfs: "salamander", "obfs-password": "obfspass" };
    await using listener = await openListener(echo, obfs, undefined, engine?.memory);
    settled.fill(0);
    for (let count = 0; count < 6; count++) {
      using router = await openRouter(listener.port);
      await using node = await openNode(router.port, obfs);
      const stream = await node.connect(TO, context());
      await asks(stream, "before");
      await router.move();
      await asks(stream, "behind");
      stream.destroy();
    }
    assert.deepEqual(settled, [6, 0, 0]);
  });

  test("give the port back", async () => {
    const listener = await openListener(echo, {}, undefined, engine?.memory);
    await using node = await openNode(listener.port);
    (await node.connect(TO, context())).destroy();
    await listener[Symbol.asyncDispose]();
    const socket = createSocket("udp4");
    socket.bind(listener.port, HOST);
    await once(socket, "listening");
    socket.close();
  });

  test("end together: the main thread reads the port when one of them has failed", async () => {
    await using own = await openQuicEngine(2);
    await using listener = await openListener(echo, {}, undefined, own.memory);
    await using first = await openNode(listener.port);
    const stream = await first.connect(TO, context());
    await asks(stream, "x");
    const over = outcome(stream);
    own.threads[1]?.outbox.put("no message" as never); // what the thread throws at it is caught nowhere
    await until("the thread is gone", () => own.died !== null);
    await over;
    for (let count = 0; count < 8; count++) {
      await using other = await openNode(listener.port);
      const again = await other.connect(TO, context());
      await asks(again, "y");
      again.destroy();
    }
  });
});
