import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeMessage, type Message, type ResourceRecord } from "./message.ts";
import { nameBytes } from "./name.ts";
import { observationOf, tryObservationOf } from "./observe.ts";

const record = (name: string, type: number, data: Uint8Array, ttl = 60): ResourceRecord => ({
  name,
  type,
  class: 1,
  ttl,
  data,
});
const a = (name: string, last: number, ttl = 60) => record(name, 1, Uint8Array.of(203, 0, 113, last), ttl);
const cname = (name: string, target: string, ttl = 60) => record(name, 5, nameBytes(target), ttl);
const dname = (name: string, target: string) => record(name, 39, nameBytes(target));

function observed(answers: readonly ResourceRecord[], change: Partial<Message> = {}) {
  const questions = [{ name: "WWW.example.org", type: 1, class: 1 }];
  const empty = { id: 1, flags: 0x8180, questions, authorities: [], additionals: [] };
  return observationOf(encodeMessage({ ...empty, answers, ...change }));
}

test("addresses at the end of the chain count, under the question's name, with the smallest TTL on the way", () => {
  const chain = [cname("www.example.org", "b.org", 30), a("b.org", 1, 90), a("c.org", 2), a("B.ORG", 3, 5)];
  assert.deepEqual(observed(chain), {
    host: "www.example.org",
    addresses: [
      { ip: "203.0.113.1", ttlMs: 30_000 },
      { ip: "203.0.113.3", ttlMs: 5000 },
    ],
  });
  assert.deepEqual(observed([dname("example.org", "b.net"), a("www.b.net", 7)])?.addresses.length, 1);
  assert.deepEqual(observed([a("www.example.org", 1, 9), a("www.example.org", 1, 7)])?.addresses, [
    { ip: "203.0.113.1", ttlMs: 7000 },
  ]);
  assert.deepEqual(observed([a("www.example.org", 1, 99_999)])?.addresses[0]?.ttlMs, 3_600_000);
  assert.deepEqual(observed([a("www.example.org", 1, 0)])?.addresses[0]?.ttlMs, 1000);
});

test("an ambiguous or endless chain, an error, a cut answer teach nothing", () => {
  const end = a("b.org", 1);
  assert.equal(observed([cname("www.example.org", "b.org"), cname("www.example.org", "c.org"), end]), null);
  assert.equal(observed([cname("www.example.org", "b.org"), cname("b.org", "www.example.org"), end]), null);
  assert.equal(observed([dname("example.org", "b.net"), cname("www.example.org", "b.org"), end]), null);
  const steps = Array.from({ length: 66 }, (_, at) =>
    cname(at === 0 ? "www.example.org" : `n${at}`, `n${at + 1}`),
  );
  assert.equal(observed([...steps, a("n66", 1)]), null);
  const good = [a("www.example.org", 1)];
  assert.equal(observed(good, { flags: 0x8380 }), null);
  assert.equal(observed(good, { flags: 0x8183 }), null);
  assert.equal(observed(good, { flags: 0x0180 }), null);
  assert.equal(observed(Array.from({ length: 65 }, (_, last) => a("www.example.org", last))), null);
  assert.equal(observed(Array.from({ length: 1025 }, () => a("www.example.org", 1))), null);
  assert.equal(tryObservationOf(Buffer.from("nonsense")), null);
});
