import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { parseCidr, type Cidr } from "#net/address/cidr.ts";
import { nftPlane } from "./nft-plane.ts";

const ips = (...texts: readonly string[]) => texts as readonly Ip[];
const NONE = { add: [], remove: [] };

test("a learnt address that equals a PROXY prefix is in no set; one inside a wider prefix is", async () => {
  const held = new Set<Ip>();
  const calls: string[] = [];
  const set = {
    async change(remove: readonly Ip[], add: readonly Ip[]) {
      calls.push("change");
      for (const ip of remove) held.delete(ip);
      for (const ip of add) held.add(ip);
    },
    async replace(all: readonly Ip[]) {
      held.clear();
      for (const ip of all) held.add(ip);
    },
  };
  const proxied = ["9.9.9.9/32", "8.8.8.0/24", "2001:db8::9/128"].map((text) => parseCidr(text) as Cidr);
  const plane = nftPlane(set, proxied);
  const learnt = ips("9.9.9.9", "8.8.8.8", "2001:db8::9", "2001:db8::8");
  await plane.apply({ direct: { add: learnt, remove: [] }, proxy: NONE });
  assert.deepEqual([...held], ips("8.8.8.8", "2001:db8::8"));
  await plane.apply({ direct: { add: [], remove: ips("9.9.9.9") }, proxy: NONE });
  assert.equal(calls.length, 1, "nothing to be written");
  await plane.replace(learnt, []);
  assert.deepEqual([...held], ips("8.8.8.8", "2001:db8::8"));
});
