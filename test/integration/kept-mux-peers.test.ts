/** sing-box as the client of listeners whose sessions of smux and yamux workers keep. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { Protocol } from "#core/protocol.ts";
import { shadowsocks } from "#protocols/shadowsocks/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { hashOf } from "../support/connections.ts";
import { type Cell, certificate, CELLS, password, uuid } from "../support/interop/cells.ts";
import { singBox } from "../support/interop/sing-box.ts";
import { openKeptClients } from "../support/kept-clients.ts";
import { echo, openTcpOrigin, source, untilHeldUp } from "../support/origin.ts";
import { freePort, missing } from "../support/peer.ts";
import { startPeerWithFiles } from "../support/peer-folder.ts";
import { socksAssociate, socksConnect } from "../support/socks-client.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? missing("sing-box") : "SKIP sessions of workers: needs Linux";
const CLIENTS = 40;

const TLS = { certificate: certificate.cert, "private-key": certificate.key };
type Server = readonly [protocol: Protocol, options: (cell: Cell) => object];
const SERVERS: Readonly<Partial<Record<Cell["protocol"], Server>>> = {
  trojan: [trojan, () => ({ ...TLS, users: [{ username: "ann", password }] })],
  vless: [vless, () => ({ ...TLS, users: [{ username: "ann", uuid }] })],
  vmess: [vmess, () => ({ users: [{ username: "ann", uuid }] })],
  ss: [shadowsocks, ({ cipher, key }) => ({ cipher, password: key, udp: false })],
};

async function open(name: string) {
  await using undo = new AsyncDisposableStack();
  const cell = CELLS.find((one) => one.name === name) ?? assert.fail(name);
  const [protocol, options] = SERVERS[cell.protocol] ?? assert.fail(name);
  const server = undo.use(await openKeptClients(protocol, options(cell), 2));
  const socksPort = await freePort();
  const launch = singBox.client(cell, socksPort, server.port) ?? assert.fail(name);
  undo.use(await startPeerWithFiles(launch.command, socksPort, launch.files));
  const dial = async (port: number) => (await socksConnect(socksPort, "127.0.0.1", port)).client;
  const opened = undo.move();
  return { server, dial, socksPort, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

for (const name of ["trojan smux", "trojan yamux", "ss smux", "ss yamux", "vmess smux", "vmess yamux"]) {
  test(`${name}: many streams at once, and long ones both ways`, { skip }, async () => {
    await using pair = await open(name);
    await using origin = await openTcpOrigin(echo);
    const big = source(6_000_000);
    await using download = await openTcpOrigin(big.on);
    const one = async (size: number): Promise<void> => {
      using client = await pair.dial(origin.port);
      const sent = randomBytes(size);
      client.send(sent);
      assert.equal(hashOf(await client.read(size)), hashOf(sent));
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, at) => one(10 + at * 3_000)));
    await one(8_000_000);
    {
      using client = await pair.dial(download.port);
      assert.equal((await client.rest()).length, 6_000_000);
    }
    const { server } = pair;
    await until("they have ended", () => server.ended.length === CLIENTS + 2);
    assert.equal(server.kept.length, CLIENTS + 2);
  });

  test(`${name}: a slow reader loses nothing`, { skip }, async () => {
    await using pair = await open(name);
    await using origin = await openTcpOrigin(echo);
    const long = source(20_000_000);
    await using download = await openTcpOrigin(long.on);
    using slow = await pair.dial(download.port);
    slow.socket.pause();
    await untilHeldUp(long.sent);
    if (name.includes("yamux")) {
      using client = await pair.dial(origin.port);
      client.send("ping");
      assert.equal(String(await client.read(4)), "ping");
    }
    let got = 0;
    slow.socket.on("data", (bytes: Buffer) => (got += bytes.length));
    slow.socket.resume();
    await until("all is here", () => got === 20_000_000);
  });
}

for (const name of ["trojan smux", "trojan yamux"])
  test(`${name}: datagrams beside streams`, { skip }, async () => {
    await using pair = await open(name);
    await using origin = await openTcpOrigin(echo);
    pair.server.onFlow = ({ flow }) => flow.receive((item) => flow.send(item));
    using udp = await socksAssociate(pair.socksPort);
    for (let at = 0; at < 5; at++) {
      udp.send(Buffer.from(`packet ${at}`), "127.0.0.1", 53);
      assert.equal(String((await udp.next()).payload), `packet ${at}`);
    }
    using client = await pair.dial(origin.port);
    client.send("ping");
    assert.equal(String(await client.read(4)), "ping");
    assert.equal(pair.server.kept.length, 1);
  });

test("padded clients are the event loop's", { skip }, async () => {
  await using pair = await open("vless yamux padded");
  await using origin = await openTcpOrigin(echo);
  using client = await pair.dial(origin.port);
  const sent = randomBytes(300_000);
  client.send(sent);
  assert.equal(hashOf(await client.read(sent.length)), hashOf(sent));
  assert.deepEqual([pair.server.sessions.length, pair.server.kept.length], [1, 0]);
});
