import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp, ipOf } from "./ip.ts";
import { NeighbourTable } from "./neighbour-table.ts";

type Events = Parameters<ConstructorParameters<typeof NeighbourTable>[1] & {}>[0];
const [A, B] = ["02:00:5e:00:53:01", "02:00:5e:00:53:02"];
const PHONE = ipOf("192.168.1.20");
const PHONE6 = ipOf("2001:db8::20");

function opened() {
  let events: Events | undefined;
  const table = new NeighbourTable(SILENT, (given) => {
    events = given;
    return null;
  });
  assert.equal(table.macOf(PHONE), null); // opens it
  const say = (ip: Ip, mac: string | null, link = 2) => events?.on({ address: bytesOfIp(ip), link, mac });
  return { table, say, reset: () => events?.reset() };
}

test("addresses of both families come, change hands and go", () => {
  const { table, say } = opened();
  say(PHONE, A);
  say(PHONE6, A);
  assert.deepEqual([table.macOf(PHONE), table.macOf(PHONE6)], [A, A]);
  assert.deepEqual(table.addressesOf(A), [PHONE, PHONE6]);
  say(PHONE, B);
  assert.deepEqual([table.macOf(PHONE), table.addressesOf(A), table.addressesOf(B)], [B, [PHONE6], [PHONE]]);
  say(PHONE, null);
  assert.deepEqual([table.macOf(PHONE), table.addressesOf(B), table.size], [null, [], 1]);
});

test("an address that two links give to different devices is of neither", () => {
  const { table, say } = opened();
  say(PHONE, A, 2);
  say(PHONE, A, 3);
  assert.equal(table.macOf(PHONE), A);
  say(PHONE, B, 3);
  assert.equal(table.macOf(PHONE), null);
  say(PHONE, null, 2);
  assert.deepEqual([table.macOf(PHONE), table.addressesOf(A)], [B, []]);
});

test("a new listing replaces everything", () => {
  const { table, say, reset } = opened();
  say(PHONE, A);
  reset();
  assert.deepEqual([table.macOf(PHONE), table.addressesOf(A), table.size], [null, [], 0]);
});

test("watchers are told addresses that have another device, together; not what is gone or the same", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { table, say } = opened();
  const told: string[][] = [];
  const watch = table.watch((changed) => told.push([...changed]));
  say(PHONE, A);
  say(PHONE, A);
  say(PHONE6, A);
  t.mock.timers.tick(100);
  say(PHONE, null);
  t.mock.timers.tick(100);
  assert.deepEqual(told, [[PHONE, PHONE6]]);
  say(PHONE, B);
  watch[Symbol.dispose]();
  t.mock.timers.tick(100);
  assert.equal(told.length, 1);
});

test("the number of addresses is bounded", () => {
  const { table, say } = opened();
  for (let at = 0; at < 65_600; at++) say(ipOf(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`), A);
  assert.equal(table.size, 65_536);
});
