/** Groups whose nodes are fetched for the first time, at the start and at a reload. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { get, HEAD } from "../support/provider-core.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";
import { openWebOrigin } from "../support/web-origin.ts";

const NODES = "proxies:\n  - {name: n1, type: direct}\n";

/** A site with lists that come when they are let go, and a page for clients. */
async function openWorld() {
  const waiting = new Map<string, (status: number) => void>();
  const asked = { page: 0 };
  const site = await openWebOrigin((request, response) => {
    const path = request.url ?? "";
    if (path.startsWith("/list"))
      return void waiting.set(path, (status) => response.writeHead(status).end(NODES));
    asked.page++;
    response.end("page");
  });
  const config = (list: string, group = ""): string => `${HEAD}
listeners: [{name: in, type: mixed, listen: 127.0.0.1, port: 0}]
proxy-providers:
  p: {type: http, url: "${site.url}${list}", interval: 3600}
proxy-groups:
  - {name: G, type: select, use: [p]${group}}
rules: ["MATCH,G"]
`;
  const ask = async (core: Core, origin = site.url): Promise<string> => {
    const socket = connect(await core.port("in"), "127.0.0.1");
    socket.write(`GET ${origin}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    const [head] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    return head.toString("latin1").split(" ")[1] ?? "";
  };
  const letGo = async (list: string, status: number): Promise<void> => {
    await until(`${list} is asked for`, async () => waiting.has(list));
    waiting.get(list)?.(status);
  };
  return { config, ask, letGo, asked, [Symbol.asyncDispose]: () => site[Symbol.asyncDispose]() };
}

test("clients are refused while the nodes of their group are fetched, and served when they are there", async () => {
  await using world = await openWorld();
  await using core = await startCore(world.config("/list"));
  assert.equal(await world.ask(core), "502");
  assert.match(core.output(), /group G: it has no members until proxy provider p is there/);
  await core.shows(/dial G .* error: proxy provider p is being fetched for the first time/);
  const { all } = await get<{ all: string[] }>(core, "/proxies/G");
  assert.deepEqual(all, ["COMPATIBLE"]);
  await world.letGo("/list", 200); // asked for by the rules, through the group itself
  await core.shows(/proxy provider p: updated/);
  assert.equal(await world.ask(core), "200");

  // Another list takes the place of the one in use.
  await core.reload(world.config("/list2"));
  assert.equal(await world.ask(core), "502");
  assert.equal(world.asked.page, 1);
  await world.letGo("/list2", 200);
  await until("the other list is used", async () => (await world.ask(core)) === "200");
});

test("a relay with such a group refuses, too, and does not go on without it", async () => {
  await using world = await openWorld();
  const relay = "\n  - {name: R, type: relay, proxies: [dead, G]}\n";
  const config = world.config("/list").replace("\nrules: [", `${relay}rules: ["DOMAIN,relay.test,R", `);
  const dead = "proxies: [{name: dead, type: socks5, server: 127.0.0.1, port: 1}]\n";
  await using core = await startCore(config + dead);
  assert.equal(await world.ask(core, "http://relay.test"), "502");
  await core.shows(/dial R .* error: relay: COMPATIBLE: proxy provider p is being fetched/);
});

test("where the first download fails, or the file says where to, clients go there", async () => {
  await using world = await openWorld();
  await using core = await startCore(world.config("/list"));
  await world.letGo("/list", 404);
  await core.shows(/proxy provider p: tried again in 10 s/);
  assert.equal(await world.ask(core), "200");
  await core.reload(world.config("/list2", ", empty-fallback: DIRECT"));
  assert.equal(await world.ask(core), "200");
});
