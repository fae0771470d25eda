import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { answerOf } from "./answer.ts";
import { Mapping } from "./mapping.ts";
import { encodeQuestion, type Query, QueryReader } from "./query.ts";

test("an answer of thousands of addresses pushes out 64 others at most", () => {
  const mapping = new Mapping();
  for (let at = 0; at < 4096; at++) mapping.insert(`203.0.${at >> 8}.${at & 255}` as Ip, "mine.org");
  const query = new QueryReader().read(encodeQuestion("many.org", 1)) as Query;
  const records = Array.from({ length: 2000 }, (_, at) => ({
    type: 1,
    ttl: 60,
    data: Uint8Array.of(198, 51, at >> 8, at & 255),
  }));
  mapping.remember("many.org", answerOf(query, records), 1);
  const hosts = mapping.exportState().map(([, host]) => host);
  assert.equal(hosts.length, 4096);
  assert.equal(hosts.filter((host) => host === "many.org").length, 64);
});

test("addresses of private networks have names, those of loopback and of one link have none", () => {
  const mapping = new Mapping();
  const query = new QueryReader().read(encodeQuestion("nas.home", 1)) as Query;
  const addresses = [
    "10.1.2.3",
    "192.168.7.8",
    "100.64.0.9",
    "127.0.0.1",
    "169.254.1.1",
    "224.0.0.1",
    "0.0.0.0",
  ];
  const records = addresses.map((ip) => ({ type: 1, ttl: 60, data: bytesOfIp(ip as Ip) }));
  mapping.remember("nas.home", answerOf(query, records), 1);
  assert.deepEqual(
    mapping.exportState().map(([ip]) => ip),
    ["10.1.2.3", "192.168.7.8", "100.64.0.9"],
  );
});
