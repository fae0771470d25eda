/** Streams that workers open of connections to sing-box. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { MuxRecipe, WireRecipe } from "#core/wire-recipe.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { keyOf } from "#protocols/trojan/wire.ts";
import { outcome } from "../support/client.ts";
import { hashOf } from "../support/connections.ts";
import type { DecidingEngine } from "../support/deciding-engine.ts";
import { CELLS, certificate, NAME, password } from "../support/interop/cells.ts";
import { singBox } from "../support/interop/sing-box.ts";
import { muxRecipe } from "../support/mux-recipe.ts";
import { echo, openTcpOrigin, source, untilHeldUp } from "../support/origin.ts";
import { freePort, missing } from "../support/peer.ts";
import { startPeerWithFiles } from "../support/peer-folder.ts";
import { socksConnect } from "../support/socks-client.ts";
import { tlsClient } from "../support/tls-origin.ts";
import { tlsProvider } from "../support/tls.ts";
import { openNodeEngine } from "../support/node-engine.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? missing("sing-box") : "SKIP streams of workers: needs Linux";
const CLIENTS = 60;

/** A server of Trojan in TLS. */
async function startServer(protocol: "smux" | "yamux", port: number): Promise<AsyncDisposable> {
  const cell = CELLS.find(({ name }) => name === `trojan ${protocol}`);
  const launch = cell === undefined ? null : singBox.server(cell, port);
  assert.ok(launch !== null);
  return await startPeerWithFiles(launch.command, port, launch.files);
}

/** Everything leads through it; all workers know it. */
async function openEngine(protocol: MuxRecipe["protocol"], port: number): Promise<DecidingEngine> {
  const client = await tlsClient(tlsProvider, { fingerprint: certificate.fingerprint }, { serverName: NAME });
  const tls = client.recipe?.() ?? null;
  assert.ok(tls !== null);
  const trojan: WireRecipe = recipe("trojan", { key: keyOf(password) });
  const mux = muxRecipe({ protocol, base: { ...trojan, under: { tls, upgrade: null } } });
  const by = { ...recipe("mux", {}), under: { tls: null, upgrade: null, mux } };
  return await openNodeEngine(port, by, 2);
}

for (const protocol of ["smux", "yamux"] as const) {
  test(`${protocol}: many streams at once, and a long one`, { skip }, async () => {
    const port = await freePort();
    await using _server = await startServer(protocol, port);
    await using engine = await openEngine(protocol, port);
    await using origin = await openTcpOrigin(echo);
    const big = source(5_000_000);
    await using download = await openTcpOrigin(big.on);
    const open = async (to: number) => (await socksConnect(engine.port, "127.0.0.1", to)).client;
    const one = async (size: number): Promise<void> => {
      using client = await open(origin.port);
      const sent = randomBytes(size);
      client.send(sent);
      assert.equal(hashOf(await client.read(size)), hashOf(sent));
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, at) => one(10 + at * 3_000)));
    {
      using client = await open(download.port);
      assert.equal((await client.rest()).length, 5_000_000);
      client.socket.end();
    }
    await until("all have been reported", () => engine.served.length === CLIENTS + 1);
    assert.equal(engine.asked.length + engine.handedOver + engine.deaths, 0);
    const sum = (from: "uploadBytes" | "downloadBytes"): number =>
      engine.served.reduce((all, row) => all + row[from], 0);
    const echoed = Array.from({ length: CLIENTS }, (_, at) => 10 + at * 3_000).reduce((a, b) => a + b);
    assert.equal(sum("uploadBytes"), echoed);
    assert.equal(sum("downloadBytes"), echoed + 5_000_000);
  });

  test(`${protocol}: a slow reader's stream waits, others go on, and nothing is lost`, { skip }, async () => {
    const port = await freePort();
    await using _server = await startServer(protocol, port);
    await using engine = await openEngine(protocol, port);
    await using origin = await openTcpOrigin(echo);
    const size = protocol === "yamux" ? 20_000_000 : 5_000_000; // without windows 8 MiB hold up the connection
    const long = source(size);
    await using download = await openTcpOrigin(long.on);
    using slow = (await socksConnect(engine.port, "127.0.0.1", download.port)).client;
    slow.socket.pause();
    await untilHeldUp(long.sent);
    for (let at = 0; at < 20; at++) {
      using client = (await socksConnect(engine.port, "127.0.0.1", origin.port)).client;
      client.send("ping");
      assert.equal(String(await client.read(4)), "ping");
    }
    if (protocol === "yamux") assert.ok(long.sent() < size, "it waits");
    let got = 0;
    slow.socket.on("data", (bytes: Buffer) => (got += bytes.length));
    slow.socket.resume();
    await until("all is here", () => got === size);
  });

  test(`${protocol}: a server that ends and comes back`, { skip }, async () => {
    const port = await freePort();
    await using origin = await openTcpOrigin(echo);
    await using server = await startServer(protocol, port);
    await using engine = await openEngine(protocol, port);
    const clients = await Promise.all(
      Array.from({ length: 20 }, () => socksConnect(engine.port, "127.0.0.1", origin.port)),
    );
    for (const { client } of clients) {
      client.send("ping");
      assert.equal(String(await client.read(4)), "ping");
    }
    const ends = clients.map(({ client }) => outcome(client.socket));
    await server[Symbol.asyncDispose]();
    assert.deepEqual(new Set(await Promise.all(ends)), new Set(["ECONNRESET"]));
    await until("all have been reported", () => engine.served.length === 20);
    assert.ok(engine.served.every((row) => row.uploadBytes === 4 && row.downloadBytes === 4));
    await using _again = await startServer(protocol, port);
    using client = (await socksConnect(engine.port, "127.0.0.1", origin.port)).client;
    client.send("back");
    assert.equal(String(await client.read(4)), "back");
  });
}
