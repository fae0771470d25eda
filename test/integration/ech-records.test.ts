/** Configurations of Encrypted ClientHello from HTTPS records, by the resolver of proxy servers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { Resolver } from "#core/resolver.ts";
import type { EchOptions } from "#core/tls.ts";
import type { ResourceRecord } from "#dns/message.ts";
import { nameBytes } from "#dns/name.ts";
import { TYPE } from "#dns/types.ts";
import { generateEchKeyPair } from "#transport/tls13/ech/keys.ts";
import { readEch } from "#transport/tls13/ech/source.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { own, PUBLIC, REAL } from "../support/ech-world.ts";
import { freePorts } from "../support/free-ports.ts";
import { nativeTls } from "../support/native-tls.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { openServer } from "../support/protocol-pair.ts";
import { startCore } from "../support/start-core.ts";
import { openTunnel } from "../support/tunnels.ts";
import { HOST, openScripted, openTestDns, reply, type Script, server } from "./dns-kit.ts";

const LIST = Buffer.from(generateEchKeyPair("public.test").config, "base64");
const signal = () => AbortSignal.timeout(8000);

const param = (key: number, value: Buffer): Buffer => {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(key, 0);
  head.writeUInt16BE(value.length, 2);
  return Buffer.concat([head, value]);
};

function https(name: string, priority: number, target: string, ...params: Buffer[]): ResourceRecord {
  const data = Buffer.concat([Buffer.of(0, priority), nameBytes(target), ...params]);
  return { name, type: TYPE.HTTPS, class: 1, ttl: 60, data: new Uint8Array(data) };
}

function sourceOf(resolver: Resolver, serverName: string, extra: object = {}): EchOptions {
  const fields = { enable: true, ...extra };
  return readEch(fields, { where: "proxy n", serverName, resolver }) ?? assert.fail("switched off");
}

const ech = param(5, LIST);
const alpn = param(1, Buffer.from("\u0002h2"));
const ZONE: Readonly<Record<string, readonly ResourceRecord[]>> = {
  "real.test": [
    https("real.test", 2, "", param(5, Buffer.from("nonsense"))),
    https("real.test", 1, "", alpn, ech),
  ],
  "none.test": [https("none.test", 1, "", alpn)],
  "alias.test": [https("alias.test", 0, "real.test")],
  "circle.test": [https("circle.test", 0, "circle.test")],
  "broken.test": [https("broken.test", 1, "", param(5, Buffer.from("nonsense")))],
};
const zone: Script = (query) => {
  const name = query.questions[0]?.name ?? "";
  if (name === "refused.test") return reply(query, [], 5);
  return reply(query, ZONE[name] ?? [], name in ZONE ? 0 : 3);
};

test("the favourite record's list is taken, by the name that is asked for, and kept", async () => {
  await using peer = await openScripted(zone);
  await using other = await openScripted(() => null);
  await using dns = await openTestDns({
    nameserver: [server(`udp://${HOST}:${other.port}`)],
    proxyServerNameserver: [server(`udp://${HOST}:${peer.port}`)],
  });
  const { proxyResolver } = dns;
  const own = sourceOf(proxyResolver, "real.test");
  assert.deepEqual(await own.configs(signal()), LIST);
  assert.deepEqual(await own.configs(signal()), LIST);
  assert.equal(peer.asked.length, 1, "the second time it is known");
  assert.equal(peer.asked[0]?.questions[0]?.type, TYPE.HTTPS);
  assert.equal(other.asked.length, 0);
  const named = sourceOf(proxyResolver, "10.0.0.1", { "query-server-name": "Real.Test" });
  assert.deepEqual(await named.configs(signal()), LIST);
  assert.deepEqual(await sourceOf(proxyResolver, "alias.test").configs(signal()), LIST);
});

test("without a configuration nothing is dialled, and the reason names key and record", async () => {
  await using peer = await openScripted(zone);
  await using dns = await openTestDns({ nameserver: [server(`udp://${HOST}:${peer.port}`)] });
  const reasons: readonly (readonly [name: string, why: RegExp])[] = [
    [
      "none.test",
      /proxy n: ech-opts: HTTPS record of none\.test: there is no configuration in it: the server/,
    ],
    [
      "unknown.test",
      /there is no configuration in it: the server has no Encrypted ClientHello, or the resolver/,
    ],
    ["circle.test", /there is no configuration in it/],
    ["broken.test", /no configuration in it that can be used/],
    ["refused.test", /the resolver does not answer .*may be blocked.*proxy-server-nameserver/],
  ];
  for (const [name, why] of reasons)
    await assert.rejects(sourceOf(dns.proxyResolver, name).configs(signal()), (error: Error) => {
      assert.match(error.message, why);
      return true;
    });
});

test("an unanswered question ends with the dial, or says that it may be blocked", async () => {
  await using silent = await openScripted(() => null);
  await using dns = await openTestDns({ nameserver: [server(`udp://${HOST}:${silent.port}`)] });
  const source = sourceOf(dns.proxyResolver, "real.test");
  await assert.rejects(source.configs(AbortSignal.timeout(50)));
  await assert.rejects(source.configs(signal()), /the resolver does not answer .*may be blocked/);
});

test("a resolver that leads through the node itself is told so at once, not after a time-out", async () => {
  const inner: { source: EchOptions | null } = { source: null };
  const resolver: Resolver = {
    lookup: () => Promise.reject(new Error("no addresses here")),
    echConfigs: async (_host, until) => {
      await Promise.resolve();
      return (await inner.source?.configs(until)) ?? null; // its connection needs the node's own configuration
    },
  };
  inner.source = sourceOf(resolver, "real.test");
  await assert.rejects(inner.source.configs(signal()), /through this very node/);
});

test("a list in the file needs no resolver", async () => {
  const source = readEch(
    { enable: true, config: LIST.toString("base64") },
    { where: "proxy n", serverName: "real.test" },
  );
  assert.deepEqual(await source?.configs(signal()), LIST);
  assert.equal(readEch(undefined, { where: "proxy n", serverName: "a" }), null);
  assert.equal(readEch({ enable: false }, { where: "proxy n", serverName: "a" }), null);
});

test(
  "a running program hides the name by a record alone",
  { skip: nativeTls === null && "needs FFI" },
  async () => {
    const { key, config } = generateEchKeyPair(PUBLIC);
    const record = https(REAL, 1, "", param(5, Buffer.from(config, "base64")));
    await using peer = await openScripted((query) =>
      reply(query, query.questions[0]?.name === REAL ? [record] : [], 0),
    );
    const account = [{ username: "u", password: "p" }];
    const tls = { certificate: own.cert, "private-key": own.key, "ech-key": key };
    await using serving = await openServer(trojan, { users: account, ...tls });
    await using echo = await openTcpOrigin((socket) => socket.pipe(socket));
    const node = (name: string, sni: string): string =>
      `  - {name: ${name}, type: trojan, server: 127.0.0.1, port: ${serving.port}, password: p, sni: ${sni}, fingerprint: ${own.fingerprint}, ech-opts: {enable: true}}\n`;
    const [mixed, other] = (await freePorts(2)) as [number, number];
    await using core = await startCore(
      `mixed-port: ${mixed}\nlog-level: debug\ndns: {enable: true, nameserver: ["udp://${HOST}:${peer.port}"]}\n` +
        `listeners:\n  - {name: other, type: mixed, listen: 127.0.0.1, port: ${other}, proxy: blocked}\n` +
        `proxies:\n${node("hidden", REAL)}${node("blocked", "blocked.test")}rules: ["MATCH,hidden"]\n`,
    );
    const to = { host: "127.0.0.1", port: echo.port };
    const socket = await openTunnel("socks5", mixed, "127.0.0.1", to);
    socket.resume().write("hidden");
    assert.equal(String((await once(socket, "data"))[0]), "hidden");
    socket.destroy();
    const blocked = await openTunnel("socks5", other, "127.0.0.1", to).catch((error: Error) => error);
    if (!(blocked instanceof Error)) blocked.destroy();
    await core.shows(/ech-opts: HTTPS record of blocked\.test: there is no configuration in it/);
  },
);
