import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { answerOf } from "#dns/answer.ts";
import { encodeQuestion, type Query, QueryReader } from "#dns/query.ts";
import { openSystemServers } from "../../../test/support/resolv-conf.ts";
import { openDhcpUpstream } from "./dhcp.ts";

const { signal } = new AbortController();
const questionIn = (query: Uint8Array) => new QueryReader().read(query) as Query;

test("questions that come while resolv.conf is read for the first time go to no other server", async () => {
  await using system = await openSystemServers();
  await system.write("nameserver 192.0.2.1\n");
  const ask = (type: number) => system.upstream.exchange(encodeQuestion("a.org", type), signal);
  await Promise.all([ask(1), ask(28), ask(1)]);
  assert.deepEqual([...system.asked], ["192.0.2.1"]);
});

test("in another network the servers are looked for at once", async () => {
  await using system = await openSystemServers({ nowMs: () => 0 });
  const ask = () => system.upstream.exchange(encodeQuestion("a.org", 1), signal);
  await system.write("nameserver 192.0.2.1\n");
  await ask();
  await system.write("nameserver 192.0.2.2\n", 1);
  await ask();
  assert.deepEqual([...system.asked], ["192.0.2.1"]);
  system.upstream.reset();
  await ask();
  assert.deepEqual([...system.asked], ["192.0.2.1", "192.0.2.2"]);
});

test("the leases of DHCP are, too", async () => {
  const root = await mkdtemp(join(tmpdir(), "dns-dhcp-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(root, { recursive: true }) };
  await mkdir(join(root, "var/lib/dhcp"), { recursive: true });
  const write = (ip: string) =>
    writeFile(join(root, "var/lib/dhcp/dhclient.eth0.leases"), `option domain-name-servers ${ip};\n`);
  const asked: string[] = [];
  const openServer = ({ host }: { readonly host: string }) => ({
    text: host,
    fixed: false,
    exchange: async (query: Uint8Array) => (asked.push(host), answerOf(questionIn(query), []).bytes),
    reset() {},
    async [Symbol.asyncDispose]() {},
  });
  const upstream = openDhcpUpstream("eth0", { root: `${root}/`, nowMs: () => 0, openServer });
  for (const ip of ["192.0.2.1", "192.0.2.2"]) {
    await write(ip);
    await upstream.exchange(encodeQuestion("a.org", 1), signal);
  }
  upstream.reset();
  await upstream.exchange(encodeQuestion("a.org", 1), signal);
  assert.deepEqual(asked, ["192.0.2.1", "192.0.2.1", "192.0.2.2"]);
});

test("the list follows the file, own addresses are never asked, and without any there are defaults", async () => {
  let now = 0;
  const own = new Set(["192.0.2.2"]) as never;
  await using system = await openSystemServers({ ownAddresses: () => own, nowMs: () => now });
  const whoIsAsked = async () => {
    system.asked.clear();
    await system.upstream.exchange(encodeQuestion("a.org", 1), signal);
    return [...system.asked];
  };
  assert.deepEqual(await whoIsAsked(), ["114.114.114.114", "8.8.8.8"]);
  await system.write("nameserver 192.0.2.1\nnameserver 192.0.2.2\n");
  now += 5000;
  assert.deepEqual(await whoIsAsked(), ["192.0.2.1"]);
  await system.write("nameserver 192.0.2.3\n", 1);
  assert.deepEqual(await whoIsAsked(), ["192.0.2.1"]);
  now += 5000;
  assert.deepEqual(await whoIsAsked(), ["192.0.2.3"]);
  await system.write("", 2);
  now += 5000;
  assert.deepEqual(await whoIsAsked(), ["192.0.2.3"], "a file without servers sends no question elsewhere");
  await system.write("nameserver 192.0.2.4\n", 3);
  now += 5000;
  assert.deepEqual(await whoIsAsked(), ["192.0.2.4"]);
});
