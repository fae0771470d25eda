import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeQuestion } from "#dns/query.ts";
import { openSystemServers } from "../../../test/support/resolv-conf.ts";

const { signal } = new AbortController();

test("questions that come while resolv.conf is read for the first time go to no other server", async () => {
  await using system = await openSystemServers();
  await system.write("nameserver 192.0.2.1\n");
  const ask = (type: number) => system.upstream.exchange(encodeQuestion("a.org", type), signal);
  await Promise.all([ask(1), ask(28), ask(1)]);
  assert.deepEqual([...system.asked], ["192.0.2.1"]);
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
