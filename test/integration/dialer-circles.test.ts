/** A node whose `dialer-proxy` is a group that holds the node itself: profiles have it, and pick something else there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { destinationText } from "#core/session.ts";
import { http } from "#protocols/http/index.ts";
import { socks } from "#protocols/socks/index.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openServer, type Serving } from "../support/protocol-pair.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore } from "../support/start-core.ts";

const asked = ({ sessions }: Serving) => sessions.map(({ destination }) => destinationText(destination));

test("a node behind a group that holds it is dialled through what the group picks, and never through itself", async () => {
  await using far = await openServer(socks, {});
  await using near = await openServer(http, {});
  await using origin = await openTcpOrigin(echo);
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const pooled = "smux: { enabled: true }";
  await using core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
proxies:
  - { name: near, type: http, server: 127.0.0.1, port: ${near.port} }
  - { name: far, type: socks5, server: 127.0.0.1, port: ${far.port}, dialer-proxy: G }
  - { name: pooled, type: ss, server: 127.0.0.1, port: 1, cipher: aes-128-gcm, password: p, ${pooled}, dialer-proxy: all }
  - { name: turn, type: anytls, server: 127.0.0.1, port: 1, password: p, dialer-proxy: balance }
proxy-groups:
  - { name: G, type: select, proxies: [near, far] }
  - { name: T, type: select, proxies: [far, pooled, turn] }
  - { name: all, type: select, include-all-proxies: true, filter: pooled }
  - { name: balance, type: load-balance, strategy: round-robin, proxies: [turn, near] }
rules: ["MATCH,T"]
`);
  assert.match(core.output(), /level=warning msg="\S+:6:\d+ proxies\[1\]\.dialer-proxy: proxy far: circular/);
  const choose = async (group: string, name: string) => {
    const body = JSON.stringify({ name });
    const { status } = await fetch(`http://127.0.0.1:${controller}/proxies/${group}`, {
      method: "PUT",
      body,
    });
    assert.equal(status, 204);
  };
  const status = async () => {
    const { client, status } = await socksConnect(mixed, "127.0.0.1", origin.port);
    client[Symbol.dispose]();
    return status;
  };
  assert.equal(await status(), 0);
  assert.deepEqual([asked(near), asked(far)], [[`127.0.0.1:${far.port}`], [`127.0.0.1:${origin.port}`]]);
  await choose("G", "far");
  assert.notEqual(await status(), 0);
  for (const name of ["pooled", "turn"]) {
    await choose("T", name);
    assert.notEqual(await status(), 0);
    await core.shows(new RegExp(`${name}: its dialer-proxy \\w+ leads back to it`));
  }
  await choose("T", "far");
  await choose("G", "near");
  assert.equal(await status(), 0);
});

test("nodes of a provider behind a group of that provider are dialled while it picks another", async () => {
  await using far = await openServer(socks, {});
  await using origin = await openTcpOrigin(echo);
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  await using core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
proxy-providers:
  p:
    type: inline
    payload: [{ name: n, type: socks5, server: 127.0.0.1, port: ${far.port} }]
    override: { dialer-proxy: G }
proxy-groups:
  - { name: G, type: select, proxies: [DIRECT], use: [p] }
  - { name: T, type: select, use: [p] }
rules: ["MATCH,T"]
`);
  await core.shows(/proxy provider p: dialer-proxy G leads back to the provider itself; while it picks/);
  const status = async () => {
    const { client, status } = await socksConnect(mixed, "127.0.0.1", origin.port);
    client[Symbol.dispose]();
    return status;
  };
  assert.equal(await status(), 0);
  assert.deepEqual(asked(far), [`127.0.0.1:${origin.port}`]);
  const body = JSON.stringify({ name: "n" });
  await fetch(`http://127.0.0.1:${controller}/proxies/G`, { method: "PUT", body });
  assert.notEqual(await status(), 0);
  await core.shows(/n: its dialer-proxy G leads back to it/);
});
