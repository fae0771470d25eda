/** Streams of HTTP/2 in connections that a node shares, and that workers open by themselves: to listeners of our own. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { Protocol } from "#core/protocol.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { outcome } from "../support/client.ts";
import { arrivesWhole, hashOf } from "../support/connections.ts";
import { type Gate, type Http2Node, openGate, openHttp2Node } from "../support/http2-node.ts";
import {
  countThenAnswer,
  echo,
  endThenListen,
  openTcpOrigin,
  source,
  untilHeldUp,
} from "../support/origin.ts";
import { openServer } from "../support/protocol-pair.ts";
import type { RawClient } from "../support/raw-client.ts";
import { runs } from "../support/runs.ts";
import { clientTls, serverTls, uuid } from "../support/tls-sides.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP nodes by workers: needs Linux";

const USERS: Readonly<Record<string, readonly [Protocol, server: object, client: object]>> = {
  vless: [vless, { users: [{ uuid }] }, { uuid }],
  vmess: [vmess, { users: [{ uuid, alterId: 0 }] }, { uuid, alterId: 0, cipher: "auto" }],
  trojan: [trojan, { users: [{ password: "letmein" }] }, { password: "letmein" }],
};
const GRPC = { network: "grpc", "grpc-opts": { "grpc-service-name": "Gun" } };
const CARRIERS: Readonly<Record<string, readonly [server: object, client: object]>> = {
  "grpc, plain": [{ "allow-insecure": true, "grpc-service-name": "Gun" }, GRPC],
  "grpc, tls": [
    { ...serverTls, "grpc-service-name": "Gun" },
    { ...clientTls, ...GRPC },
  ],
  "grpc, tls as of Chrome": [
    { ...serverTls, "grpc-service-name": "Gun" },
    { ...clientTls, ...GRPC, "client-fingerprint": "chrome" },
  ],
  "xhttp, tls": [
    { ...serverTls, "xhttp-config": { path: "/x" } },
    { ...clientTls, network: "xhttp", "xhttp-opts": { path: "/x", mode: "stream-one" } },
  ],
  "h2, tls": [
    { ...serverTls, "h2-config": { host: ["a.test", "b.test"], path: "/h2" } },
    { ...clientTls, network: "h2", "h2-opts": { host: ["a.test", "b.test"], path: "/h2" } },
  ],
};
/** Only nodes of VLESS have XHTTP. Trojan has no h2, and nothing without TLS. */
const KINDS = Object.keys(USERS)
  .flatMap((user) => Object.keys(CARRIERS).map((carrier) => [user, carrier] as const))
  .filter(([user, carrier]) =>
    carrier.startsWith("xhttp") ? user === "vless" : user !== "trojan" || carrier.startsWith("grpc, tls"),
  );

interface World extends AsyncDisposable {
  readonly node: Http2Node;
  readonly gate: Gate;
}

async function openWorld(user: string, carrier: string, more: object = {}): Promise<World> {
  await using undo = new AsyncDisposableStack();
  const [protocol, server, client] = USERS[user] as (typeof USERS)[string];
  const [below, above] = CARRIERS[carrier] as (typeof CARRIERS)[string];
  const { port } = undo.use(await openServer(protocol, { ...server, ...below }));
  const gate = undo.use(await openGate(port));
  const node = undo.use(await openHttp2Node(protocol, { ...client, ...above, ...more, port: gate.port }));
  const opened = undo.move();
  return { node, gate, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** All of so many connections were the worker's, and no one else was asked. */
async function wasAlone({ engine }: Http2Node, count: number): Promise<void> {
  await until("all have been reported", () => engine.served.length >= count);
  assert.deepEqual(
    [engine.served.length, engine.asked.length, engine.handedOver, engine.deaths],
    [count, 0, 0, 0],
  );
}

async function pings(client: RawClient): Promise<void> {
  client.send("ping");
  assert.equal(String(await client.read(4)), "ping");
}

for (const [user, carrier] of KINDS) {
  test(`${user} over ${carrier}: whatever is said arrives, in one connection`, { skip }, async () => {
    await using world = await openWorld(user, carrier);
    const { node, gate } = world;
    await using origin = await openTcpOrigin(echo);
    await using counter = await openTcpOrigin(countThenAnswer);
    await using first = await openTcpOrigin((socket) => void socket.end("hello"));
    let left = "";
    await using early = await openTcpOrigin(endThenListen((received) => (left = received.toString())));
    const big = randomBytes(3_000_000);
    {
      using client = await node.dial(origin.port);
      await pings(client);
      client.send(big);
      assert.equal(hashOf(await client.read(big.length)), hashOf(big));
      client.socket.end();
      assert.equal((await client.rest()).length, 0);
    }
    {
      using client = await node.dial(counter.port); // it is silent until the end
      client.send(big);
      client.socket.end();
      assert.equal(String(await client.rest()), String(big.length));
    }
    {
      using client = await node.dial(first.port); // this one is, and the origin speaks first
      assert.equal(String(await client.rest()), "hello");
    }
    {
      using client = await node.dial(counter.port);
      client.socket.end(); // without a byte
      assert.equal(String(await client.rest()), "0");
    }
    {
      using client = await node.dial(early.port);
      assert.equal(String(await client.rest()), "bye");
      client.send("behind its end");
      client.socket.end();
      await until("it has come", () => left !== "");
      assert.equal(left, "behind its end");
    }
    await wasAlone(node, 5);
    assert.equal(gate.connections.length, 1);
    const sums = node.engine.served.map(
      ({ uploadBytes, downloadBytes }) => `${uploadBytes}/${downloadBytes}`,
    );
    const whole = big.length + 4;
    const expected = [`${whole}/${whole}`, `${big.length}/7`, "0/5", "0/1", "14/3"];
    assert.deepEqual(sums.toSorted(), expected.toSorted());
  });
}

for (const carrier of ["grpc, plain", "h2, tls"]) {
  test(`${carrier}: whatever both sides write arrives whole, and ends in any order`, { skip }, async () => {
    await using world = await openWorld("vless", carrier);
    const { node, gate } = world;
    let count = 0;
    const open = async (port: number) => ({
      relays: [],
      async dial() {
        count++;
        return (await node.dial(port)).socket;
      },
      async [Symbol.asyncDispose]() {},
    });
    await arrivesWhole(open, { numRuns: runs(40), pauseMs: 1 });
    await wasAlone(node, count);
    assert.equal(gate.connections.length, 1);
  });

  test(`${carrier}: many streams side by side`, { skip, timeout: 120_000 }, async () => {
    await using world = await openWorld("vless", carrier);
    const { node, gate } = world;
    await using origin = await openTcpOrigin(echo);
    using before = await node.dial(origin.port);
    await pings(before); // the server has said how many streams it takes
    const one = async (size: number): Promise<void> => {
      using client = await node.dial(origin.port);
      const sent = randomBytes(size);
      client.send(sent);
      assert.equal(hashOf(await client.read(size)), hashOf(sent));
      client.socket.end();
      assert.equal((await client.rest()).length, 0);
    };
    const count = 200;
    await Promise.all(Array.from({ length: count }, (_, at) => one(1 + at * 1_500)));
    before.socket.destroy();
    await wasAlone(node, count + 1);
    assert.equal(gate.connections.length, 1);
  });

  test(`${carrier}: a slow reader's stream waits, others go on, and nothing is lost`, { skip }, async () => {
    await using world = await openWorld("vless", carrier);
    const { node, gate } = world;
    await using origin = await openTcpOrigin(echo);
    const long = source(30_000_000);
    await using download = await openTcpOrigin(long.on);
    using slow = await node.dial(download.port);
    slow.socket.pause();
    await untilHeldUp(long.sent);
    assert.ok(long.sent() < 30_000_000, "it waits");
    for (let at = 0; at < 20; at++) {
      using client = await node.dial(origin.port);
      await pings(client);
    }
    let got = 0;
    slow.socket.removeAllListeners("data").on("data", (bytes: Buffer) => (got += bytes.length));
    slow.socket.resume();
    await until("all is here", () => got === 30_000_000);
    assert.equal(gate.connections.length, 1);
  });

  test(
    `${carrier}: a connection that dies takes its streams, and the next one is another`,
    { skip },
    async () => {
      await using world = await openWorld("vless", carrier);
      const { node, gate } = world;
      await using origin = await openTcpOrigin(echo);
      const clients = await Promise.all(Array.from({ length: 20 }, () => node.dial(origin.port)));
      for (const client of clients) await pings(client);
      const ends = clients.map(({ socket }) => outcome(socket));
      gate.connections[0]?.destroy();
      assert.deepEqual(new Set(await Promise.all(ends)), new Set(["ECONNRESET"]));
      using next = await node.dial(origin.port);
      await pings(next);
      assert.equal(gate.connections.length, 2);
      next.socket.destroy();
      await wasAlone(node, 21);
      assert.ok(node.engine.served.every((row) => row.uploadBytes === 4 && row.downloadBytes === 4));
    },
  );

  test(
    `${carrier}: with its node an idle connection ends, a busy one with its last stream`,
    { skip },
    async () => {
      await using world = await openWorld("vless", carrier);
      const { node, gate } = world;
      await using origin = await openTcpOrigin(echo);
      using client = await node.dial(origin.port);
      await pings(client);
      await node.remove();
      const upload = randomBytes(5_000_000);
      client.send(upload);
      assert.equal(hashOf(await client.read(upload.length)), hashOf(upload));
      assert.equal(gate.connections[0]?.closed, false);
      client.socket.end();
      assert.equal((await client.rest()).length, 0);
      await until("it is closed", () => gate.connections[0]?.closed === true);
      assert.equal(gate.connections.length, 1);
    },
  );

  test(`${carrier}: an idle connection of a node that is removed ends`, { skip }, async () => {
    await using world = await openWorld("vless", carrier);
    const { node, gate } = world;
    await using origin = await openTcpOrigin(echo);
    using client = await node.dial(origin.port);
    await pings(client);
    client.socket.destroy();
    await wasAlone(node, 1);
    assert.equal(gate.connections[0]?.closed, false);
    await node.remove();
    await until("it is closed", () => gate.connections[0]?.closed === true);
  });
}

const BOUNDS = [
  [{}, 9, 1],
  [{ "max-streams": 2 }, 5, 3],
  [{ "max-connections": 1 }, 5, 1],
  [{ "max-connections": 2 }, 5, 2],
  [{ "max-connections": 3, "min-streams": 2 }, 5, 3],
  [{ "max-connections": 3, "min-streams": 4 }, 5, 2],
] as const;

for (const [bounds, count, connections] of BOUNDS)
  test(
    `streams and connections are as many as the node has them: ${JSON.stringify(bounds)}`,
    { skip },
    async () => {
      const options = { "grpc-opts": { "grpc-service-name": "Gun", ...bounds } };
      await using world = await openWorld("vless", "grpc, plain", options);
      const { node, gate } = world;
      await using origin = await openTcpOrigin(echo);
      const clients: RawClient[] = [];
      for (let at = 0; at < count; at++) {
        const client = await node.dial(origin.port);
        clients.push(client);
        await pings(client);
      }
      assert.equal(gate.connections.length, connections);
      for (const { socket } of clients) socket.destroy();
      await wasAlone(node, count);
    },
  );
