import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, finishAnswer } from "./answer.ts";
import { AnswerCache } from "./cache.ts";
import { decodeMessage, encodeMessage, type ResourceRecord } from "./message.ts";
import { eachAnswer, openPacket, type Packet, smallestTtlOf } from "./packet.ts";
import { encodeQuestion, type Query, QueryReader } from "./query.ts";
import { ArcStore, LruStore } from "./store.ts";

const reader = new QueryReader();
const ask = (name: string, type = 1): Query => reader.read(encodeQuestion(name, type)) as Query;
const data = Uint8Array.of(192, 0, 2, 1);
const a = (ttl: number) => ({ type: 1, ttl, data });

function clockedCache(algorithm: "lru" | "arc" = "lru") {
  let now = 1_000_000;
  const cache = new AnswerCache({ algorithm, maxEntries: 4 }, () => now);
  return { cache, pass: (seconds: number) => (now += seconds * 1000) };
}

function ttlSeen(cache: AnswerCache, query: Query): readonly number[] | null {
  const hit = cache.get(query.key);
  return hit === null ? null : decodeMessage(finishAnswer(query, hit, 512)).answers.map(({ ttl }) => ttl);
}

test("dns.md §16.7 the client sees what is left of the TTL, then 1", () => {
  const { cache, pass } = clockedCache();
  const query = ask("example.org");
  cache.put(query, answerOf(query, [a(300), a(900)]));
  assert.deepEqual(ttlSeen(cache, query), [300, 900]);
  pass(100);
  assert.deepEqual(ttlSeen(cache, query), [200, 800]);
  assert.equal(cache.get(query.key)?.stale, false);
  pass(300);
  assert.deepEqual(ttlSeen(cache, query), [1, 1]);
  assert.equal(cache.get(query.key)?.stale, true);
  pass(86_400);
  assert.equal(cache.get(query.key), null);
});

test("what is kept and for how long", () => {
  const { cache, pass } = clockedCache();
  const kept = (query: Query) => cache.get(query.key)?.stale === false;
  const zero = ask("zero.org");
  cache.put(zero, answerOf(zero, [a(0)]));
  assert.equal(kept(zero), false);
  const empty = ask("empty.org");
  cache.put(empty, answerOf(empty, []));
  assert.equal(kept(empty), false);
  const failed = ask("failed.org");
  cache.put(failed, answerOf(failed, [], 2));
  assert.equal(kept(failed), true);
  pass(6);
  assert.equal(cache.get(failed.key), null);
  const challenge = ask("_acme-challenge.example.org", 16);
  cache.put(challenge, answerOf(challenge, [{ type: 16, ttl: 600, data: Uint8Array.of(1, 97) }]));
  assert.equal(kept(challenge), false);
  const forever = ask("forever.org");
  cache.put(forever, openPacket(answerOf(forever, [a(0x7fffffff)]).bytes));
  pass(8 * 86_400);
  assert.equal(cache.get(forever.key)?.stale, true);
});

test("a clock that was set back keeps nothing alive, and a cut answer is not kept", () => {
  const { cache, pass } = clockedCache();
  const query = ask("example.org");
  cache.put(query, answerOf(query, [a(300)]));
  pass(-86_400);
  assert.equal(cache.get(query.key)?.stale, true);
  assert.deepEqual(ttlSeen(cache, query), [1]);
  const cut = ask("cut.org");
  const packet = answerOf(cut, [a(300)]);
  packet.bytes[2] = (packet.bytes[2] as number) | 0x02;
  cache.put(cut, packet);
  assert.equal(cache.get(cut.key), null);
});

test("no TTL is longer than a week", () => {
  const query = ask("example.org");
  const packet = openPacket(answerOf(query, [a(0x7fffffff), a(60 * 86_400)]).bytes);
  assert.equal(packet.minTtl, 7 * 86_400);
  const ttls = decodeMessage(packet.bytes).answers.map(({ ttl }) => ttl);
  assert.deepEqual(ttls, [7 * 86_400, 7 * 86_400]);
});

test("an absurd TTL counts as zero, OPT is taken out, its TTL field is none", () => {
  const record = (name: string, type: number, ttl: number, bytes = data): ResourceRecord => ({
    name,
    type,
    class: 1,
    ttl,
    data: bytes,
  });
  const opt = record("", 41, 0x8000, new Uint8Array(0));
  const sent = {
    id: 1,
    flags: 0x8180,
    questions: [{ name: "example.org", type: 1, class: 1 }],
    answers: [record("example.org", 1, 300)],
    authorities: [],
    additionals: [opt],
  };
  assert.equal(openPacket(encodeMessage(sent)).minTtl, 300);
  const early = { ...sent, additionals: [opt, record("ns.example.org", 1, 40)] };
  for (const message of [sent, early]) {
    const packet = openPacket(encodeMessage(message));
    assert.equal(
      decodeMessage(packet.bytes).additionals.some(({ type }) => type === 41),
      false,
    );
  }
  assert.equal(openPacket(encodeMessage(early)).minTtl, 40);
  const lying = { ...sent, answers: [record("example.org", 1, 0xffffffff)] };
  assert.equal(openPacket(encodeMessage(lying)).minTtl, 0);
  const extended = { ...sent, additionals: [{ ...opt, ttl: 0x01000000 }] };
  assert.throws(() => openPacket(encodeMessage(extended)), /extended response code/);
  assert.throws(() => openPacket(encodeMessage({ ...sent, additionals: [opt, opt] })), /misuses OPT/);
});

test("the smallest TTL of a message is that of any record", () => {
  const query = ask("example.org");
  assert.equal(smallestTtlOf(answerOf(query, [a(300), a(7)]).bytes), 7);
  assert.equal(smallestTtlOf(answerOf(query, []).bytes), 0);
});

test("the asker's spelling, id and OPT go into a copy", () => {
  const first = ask("example.org");
  const packet = answerOf(first, [a(60)]);
  const before = Buffer.from(packet.bytes);
  const again = Buffer.from(encodeQuestion("example.org", 1));
  again.write("EXAMPLE", 13, "latin1");
  const query = reader.read(again) as Query;
  assert.equal(query.key, first.key);
  const answer = decodeMessage(finishAnswer(query, { packet, takeSeconds: 10 }, 512));
  assert.equal(answer.questions[0]?.name, "EXAMPLE.org");
  assert.equal(answer.answers[0]?.name, "EXAMPLE.org");
  assert.equal(answer.id, query.id);
  assert.deepEqual(Buffer.from(packet.bytes), before);
});

test("cut answers keep whole records and say so", () => {
  const query = ask("example.org");
  const packet = answerOf(
    query,
    Array.from({ length: 60 }, () => a(60)),
  );
  const bytes = finishAnswer(query, { packet, takeSeconds: 0 }, 512);
  assert.ok(bytes.length <= 512 && bytes.length > 480);
  const cut = decodeMessage(bytes);
  assert.notEqual(cut.flags & 0x0200, 0);
  assert.equal(cut.answers.length, Math.floor((512 - query.questionEnd) / 16));
});

test("a cut answer counts what is left of each section", () => {
  const query = ask("example.org");
  const of = (count: number): ResourceRecord[] =>
    Array.from({ length: count }, () => ({ name: "example.org", type: 1, class: 1, ttl: 60, data }));
  const whole = { id: 0, flags: 0x8180, questions: [{ name: "example.org", type: 1, class: 1 }] };
  const packet = openPacket(
    encodeMessage({ ...whole, answers: of(10), authorities: of(10), additionals: of(30) }),
  );
  for (const [room, counts] of [
    [512, [10, 10, 10]],
    [query.questionEnd + 16 * 14 + 15, [10, 4, 0]],
    [query.questionEnd + 15, [0, 0, 0]],
  ] as const) {
    const { answers, authorities, additionals } = decodeMessage(
      finishAnswer(query, { packet, takeSeconds: 1 }, room),
    );
    assert.deepEqual([answers.length, authorities.length, additionals.length], counts);
    assert.ok([...answers, ...authorities, ...additionals].every(({ ttl }) => ttl === 59));
  }
});

/** Thousands of addresses of one name that has as many labels as a name can have. */
function costlyAnswer(): { readonly query: Query; readonly packet: Packet } {
  const name = Array.from({ length: 120 }, () => "a").join(".");
  const addresses = Array.from({ length: 4000 }, () => a(60));
  const query = ask(name);
  return { query, packet: openPacket(answerOf(query, addresses).bytes) };
}

test("an answer of thousands of records with long names costs no more with each question", () => {
  const { query, packet } = costlyAnswer();
  const began = performance.now();
  for (let asked = 0; asked < 1000; asked++) {
    assert.equal(finishAnswer(query, { packet, takeSeconds: 1 }, 512).length <= 512, true);
    eachAnswer(packet, 28, () => assert.fail("there is none"));
    assert.equal(smallestTtlOf(packet.bytes), 0); // over HTTP it is not to be kept
  }
  const tookMs = performance.now() - began;
  assert.ok(tookMs < 1500, `${Math.round(tookMs)} ms for 1,000 questions`);
});

for (const [kind, Kind] of [
  ["lru", LruStore],
  ["arc", ArcStore],
] as const) {
  test(`${kind}: never more entries or bytes than allowed, and what was just used stays`, () => {
    const store = new Kind<number>({ entries: 8, bytes: 1000 });
    for (let index = 0; index < 500; index++) {
      store.set(`name${index % 37}`, index, 10 + (index % 90));
      assert.equal(store.get(`name${index % 37}`), index);
      assert.ok(store.size <= 8);
    }
    store.set("large", 1, 999);
    assert.equal(store.size, 1);
    store.set("too large", 1, 1001);
    assert.equal(store.size, 0);
    store.clear();
    assert.equal(store.get("large"), undefined);
  });
}

test("arc: one sweep over many names leaves those in daily use alone", () => {
  const store = new ArcStore<number>({ entries: 10, bytes: 1e6 });
  for (const name of ["a", "b", "c"]) {
    store.set(name, 1, 1);
    store.get(name);
  }
  for (let index = 0; index < 1000; index++) store.set(`sweep${index}`, 1, 1);
  for (const name of ["a", "b", "c"]) assert.equal(store.get(name), 1);
});
