/** Nodes that workers dial by themselves: what clients and servers see, and what is reported of the connections. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { WireRecipe } from "#core/wire-recipe.ts";
import { SharedAnswers } from "#dns/shared-answers.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import { SharedSalts } from "#lib/shared-salts.ts";
import { masterKey, methodOf } from "#protocols/shadowsocks/methods.ts";
import { keyOf } from "#protocols/trojan/wire.ts";
import { commandKey } from "#protocols/vmess/kdf.ts";
import { OPTION_CHUNKS, OPTION_MASKING, SECURITY_AES, SECURITY_CHACHA } from "#protocols/vmess/header.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { userIdBytes } from "#protocols/shared/user-id.ts";
import { muxRecipe } from "../support/mux-recipe.ts";
import type { DecidingEngine } from "../support/deciding-engine.ts";
import { countThenAnswer, echo, endThenListen, openTcpOrigin } from "../support/origin.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { certificate, tlsClient } from "../support/tls-origin.ts";
import { tlsProvider } from "../support/tls.ts";
import { openNodeEngine } from "../support/node-engine.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP nodes by workers: needs Linux";
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const keys = { plain: Buffer.alloc(16, 7), server: Buffer.alloc(32, 8), user: Buffer.alloc(32, 9) };
const base64 = (key: Buffer): string => key.toString("base64");

const tls = `certificate: ${JSON.stringify(certificate.cert)}, private-key: ${JSON.stringify(certificate.key)}`;

const SERVERS = `
listeners:
  - { name: vless-tls, type: vless, listen: 127.0.0.1, port: 0, users: [{ username: ann, uuid: ${uuid} }], ${tls} }
  - { name: vision, type: vless, listen: 127.0.0.1, port: 0, users: [{ username: ann, uuid: ${uuid}, flow: xtls-rprx-vision }], ${tls} }
  - { name: vmess-tls, type: vmess, listen: 127.0.0.1, port: 0, users: [{ username: ann, uuid: ${uuid}, alterId: 0 }], ${tls} }
  - { name: vless-ws, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, ws-path: /ws, users: [{ username: ann, uuid: ${uuid} }] }
  - { name: vmess-wss, type: vmess, listen: 127.0.0.1, port: 0, ws-path: /ws, users: [{ username: ann, uuid: ${uuid}, alterId: 0 }], ${tls} }
  - { name: trojan-wss, type: trojan, listen: 127.0.0.1, port: 0, ws-path: /ws, users: [{ username: ann, password: letmein }], ${tls} }
  - { name: trojan, type: trojan, listen: 127.0.0.1, port: 0, users: [{ username: ann, password: letmein }], ${tls} }
  - { name: vless, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [{ username: ann, uuid: ${uuid} }] }
  - { name: vmess, type: vmess, listen: 127.0.0.1, port: 0, users: [{ username: ann, uuid: ${uuid}, alterId: 0 }] }
  - { name: shadow, type: shadowsocks, listen: 127.0.0.1, port: 0, cipher: 2022-blake3-aes-128-gcm, password: "${base64(keys.plain)}" }
  - { name: older, type: shadowsocks, listen: 127.0.0.1, port: 0, cipher: chacha20-ietf-poly1305, password: old }
  - name: several
    type: shadowsocks
    listen: 127.0.0.1
    port: 0
    cipher: 2022-blake3-aes-256-gcm
    password: "${base64(keys.server)}"
    users: { ann: "${base64(keys.user)}" }
hosts: { far.test: 127.0.0.1 }
mode: direct
`;

const vmess = (security: number): WireRecipe =>
  recipe("vmess", {
    commandKey: Uint8Array.from(commandKey(userIdBytes(uuid))),
    security,
    options: OPTION_CHUNKS | OPTION_MASKING,
  });
const TROJAN = recipe("trojan", { key: keyOf("letmein") });
const id = Uint8Array.from(userIdBytes(uuid));
const VLESS = recipe("vless", { id, flow: "" });
const VISION = recipe("vless", { id, flow: "xtls-rprx-vision" });

/** Of a server that shows the certificate of `server.test`. */
const overServerTest = await tlsClient(tlsProvider, {});
const asChrome = await tlsClient(tlsProvider, { "client-fingerprint": "chrome" });
const asFirefox = await tlsClient(tlsProvider, { "client-fingerprint": "firefox" });
const overTls = (by: WireRecipe, client = overServerTest): WireRecipe => {
  const tls = client.recipe?.() ?? null;
  return tls === null ? by : { ...by, under: { upgrade: null, ...by.under, tls } };
};
const upgraded = (by: WireRecipe, isFramed = true): WireRecipe => {
  const upgrade = { isFramed, path: "/ws", host: "server.test", headers: { "X-Some": "thing" } };
  return { ...by, under: { tls: null, upgrade } };
};

/** A stream of connections that are begun by the other one. */
const shared = (protocol: "smux" | "yamux", base: WireRecipe): WireRecipe => ({
  ...recipe("mux", {}),
  under: { tls: null, upgrade: null, mux: muxRecipe({ protocol, base }) },
});

const copy = (key: Buffer): Uint8Array => Uint8Array.from(key);
const OLDER = "chacha20-ietf-poly1305";
const ALONE: readonly (readonly [listener: string, recipe: WireRecipe])[] = [
  ["vless", VLESS],
  ["vless-tls", overTls(VLESS)],
  ["vision", overTls(VISION)],
  ["vision", overTls(VISION, asFirefox)],
  ["vmess-tls", overTls(vmess(SECURITY_AES))],
  ["vmess-tls", overTls(vmess(SECURITY_CHACHA))],
  ["trojan", overTls(TROJAN)],
  ["trojan", overTls(TROJAN, asChrome)],
  ["vless-ws", upgraded(VLESS)],
  ["vless-ws", upgraded(VLESS, false)],
  ["vmess-wss", overTls(upgraded(vmess(SECURITY_AES)))],
  ["trojan-wss", overTls(upgraded(TROJAN), asChrome)],
  ["vless-tls", overTls(VLESS, asFirefox)],
  ["vmess-tls", overTls(vmess(SECURITY_AES), asChrome)],
  ["vmess", vmess(SECURITY_AES)],
  ["vmess", vmess(SECURITY_CHACHA)],
  [
    "shadow",
    recipe("shadowsocks", { cipher: "2022-blake3-aes-128-gcm", keys: [copy(keys.plain)], salts: null }),
  ],
  [
    "older",
    recipe("shadowsocks", {
      cipher: OLDER,
      keys: [copy(masterKey(methodOf(OLDER), "old"))],
      salts: new SharedSalts().memory,
    }),
  ],
  [
    "several",
    recipe("shadowsocks", {
      cipher: "2022-blake3-aes-256-gcm",
      keys: [copy(keys.server), copy(keys.user)],
      salts: null,
    }),
  ],
];

const BASES: typeof ALONE = [
  ["vless", VLESS],
  ["vision", overTls(VISION)],
  ["trojan", overTls(TROJAN, asChrome)],
  ["vmess-wss", overTls(upgraded(vmess(SECURITY_AES)))],
];
const SHARED = BASES.flatMap(([listener, by]) =>
  (["smux", "yamux"] as const).map((protocol) => [listener, shared(protocol, by)] as const),
);

/** Everything leads through the node; all workers know it. */
async function openEngine(servers: Core, listener: string, by: WireRecipe): Promise<DecidingEngine> {
  return await openNodeEngine(await servers.port(listener), by, 2);
}

async function open(engine: DecidingEngine, host: string, port: number) {
  const { client, status } = await socksConnect(engine.port, host, port);
  assert.equal(status, 0);
  return client;
}

for (const [what, recipes] of [
  ["by every protocol", ALONE],
  ["in streams of shared connections", SHARED],
] as const)
  test(`whatever is said arrives ${what}, and the main thread is asked for nothing`, { skip }, async () => {
    await using servers = await startCore(SERVERS);
    await using origin = await openTcpOrigin(echo);
    await using counter = await openTcpOrigin(countThenAnswer);
    await using first = await openTcpOrigin((socket) => void socket.end("hello"));
    let left = "";
    await using early = await openTcpOrigin(endThenListen((received) => (left = received.toString())));
    const big = Buffer.alloc(3_000_000, "0123456789");
    for (const [listener, by] of recipes) {
      await using engine = await openEngine(servers, listener, by);
      {
        using client = await open(engine, "127.0.0.1", origin.port);
        client.send("ping");
        assert.equal(String(await client.read(4)), "ping");
        client.send(big);
        assert.ok((await client.read(big.length)).equals(big), `${listener}: both ways`);
      }
      {
        using client = await open(engine, "127.0.0.1", counter.port); // it is silent until the end
        client.send(big);
        client.socket.end();
        assert.equal(String(await client.rest()), String(big.length));
      }
      {
        using client = await open(engine, "127.0.0.1", first.port); // this one is, and the origin speaks first
        assert.equal(String(await client.rest()), "hello");
      }
      {
        using client = await open(engine, "127.0.0.1", counter.port);
        client.socket.end(); // without a byte
        assert.equal(String(await client.rest()), "0");
      }
      {
        using client = await open(engine, "127.0.0.1", early.port);
        assert.equal(String(await client.rest()), "bye");
        client.send("behind its end");
        client.socket.end();
        await until("it has come", () => left !== "");
        assert.equal(left, "behind its end");
        left = "";
      }
      await until("all have been reported", () => engine.served.length >= 5);
      assert.equal(engine.asked.length, 0);
      assert.equal(engine.handedOver, 0);
      assert.equal(engine.deaths, 0);
      const one = engine.served.find(({ metadata }) => metadata.destination.port === origin.port);
      assert.deepEqual(one?.metadata.destination, toDestination("127.0.0.1", origin.port));
      assert.equal(one?.dialled.ip, LOOPBACK_V4);
      const sums = engine.served.map(({ uploadBytes, downloadBytes }) =>
        [uploadBytes, downloadBytes].join("/"),
      );
      const whole = big.length + 4;
      assert.deepEqual(
        sums.toSorted(),
        [`${whole}/${whole}`, `${big.length}/7`, "0/5", "0/1", "14/3"].toSorted(),
        listener,
      );
    }
  });

test("a name goes to the server as it is, and needs no address", { skip }, async () => {
  await using servers = await startCore(SERVERS);
  await using origin = await openTcpOrigin(echo);
  await using engine = await openEngine(servers, "vless", VLESS);
  const answers = new SharedAnswers(Date.now);
  engine.names = answers.memory;
  engine.change([{ is: "always" }]);
  await until("all workers have the third version", () => engine.dropped.length > 1);
  // The hosts table may have something else for it, for all that a worker knows; nor could it say this one.
  const odd = "\u4f8b.test";
  answers.pinNone(odd);
  for (const [at, name] of ["far.test", odd].entries()) {
    await assert.rejects(socksConnect(engine.port, name, origin.port));
    assert.equal(engine.asked.length, at + 1);
  }
  answers.pinNone("far.test");
  using client = await open(engine, "far.test", origin.port);
  client.send("ping");
  assert.equal(String(await client.read(4)), "ping");
  engine.join();
  const [joined] = engine.joined;
  assert.deepEqual(joined?.metadata.destination, { host: "far.test", ip: null, port: origin.port });
  assert.deepEqual([joined?.dialled.ip, joined?.ipFrom], [LOOPBACK_V4, "dial"]);
  joined?.worker.reset();
  await assert.rejects(client.read(1));
  await until("it is over", () => engine.ended === 1);
});

test(
  "a server that does not answer, or is a listener of our own, is for the main thread",
  { skip },
  async () => {
    const closed = await openTcpOrigin(echo);
    await closed[Symbol.asyncDispose]();
    await using engine = await openNodeEngine(closed.port, VLESS);
    await assert.rejects(socksConnect(engine.port, "127.0.0.1", 9));
    assert.equal(engine.asked.length, 1);
    await using origin = await openTcpOrigin(echo);
    engine.node = { server: toDestination(LOOPBACK_V4, origin.port), recipe: VLESS };
    engine.ownPorts = new Set([origin.port]);
    engine.change([{ is: "always" }]);
    await until("the third version", () => engine.dropped.length > 1);
    await assert.rejects(socksConnect(engine.port, "127.0.0.1", 9));
    assert.equal(engine.asked.length, 2);
  },
);
