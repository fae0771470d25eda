import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { explanationLines } from "./explain-text.ts";

const BASE = {
  name: "a.org",
  hosts: null,
  faked: false,
  by: "nameserver",
  servers: ["udp://192.0.2.1:53"],
  cached: false,
};

test("which policy chose which servers, cached or faked, and what hosts say", () => {
  assert.deepEqual(explanationLines({ ...BASE, by: "+.org", cached: true }), [
    "DNS a.org: clients are given the real answer",
    "DNS a.org: +.org chooses udp://192.0.2.1:53; the answer is in the cache",
  ]);
  assert.deepEqual(explanationLines({ ...BASE, faked: true, hosts: { name: "b.org", addresses: null } }), [
    "DNS a.org: hosts: stands for b.org",
    "DNS a.org: clients are given a fake address",
    "DNS a.org: nameserver chooses udp://192.0.2.1:53",
  ]);
  const pinned = { name: "a.org", addresses: ["192.0.2.9" as Ip] };
  assert.deepEqual(explanationLines({ ...BASE, hosts: pinned }), ["DNS a.org: hosts: 192.0.2.9"]);
});
