import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ip } from "../../test/support/routing.ts";
import { runs } from "../../test/support/runs.ts";
import { LearnedBook, type Verdict } from "./learned-book.ts";

const HOUR_MS = 3_600_000;

function book(maxEntries: number) {
  let evictions = 0;
  const learned = new LearnedBook(maxEntries, () => void evictions++);
  const see = (address: string, host: string, direct: boolean, expiresAtMs = HOUR_MS, nowMs = 0) =>
    learned.observe({ ip: ip(address), host, direct, expiresAtMs }, nowMs);
  return { learned, see, evictions: () => evictions };
}

test("kernel-direct.md §8.2: an address shared with a name that is not direct", () => {
  const { learned, see } = book(10);
  see("9.9.9.9", "a.org", true);
  assert.equal(learned.verdict(ip("9.9.9.9")), "direct");
  see("9.9.9.9", "b.org", false, 60_000);
  assert.equal(learned.verdict(ip("9.9.9.9")), "proxy");
  see("9.9.9.9", "a.org", true);
  assert.equal(learned.verdict(ip("9.9.9.9")), "proxy");
  learned.expire(59_000);
  assert.equal(learned.verdict(ip("9.9.9.9")), "proxy");
  learned.expire(61_000);
  assert.equal(learned.verdict(ip("9.9.9.9")), "direct");
  learned.expire(HOUR_MS + 1000);
  assert.equal(learned.verdict(ip("9.9.9.9")), null);
  assert.equal(learned.counts.records, 0);
});

test("kernel-direct.md §8.6: capacity 1, four DIRECT names, then one PROXY name", () => {
  const { learned, see, evictions } = book(1);
  for (const host of ["a", "b", "c", "d"]) see("9.9.9.9", host, true);
  assert.equal(learned.counts.records, 4);
  see("9.9.9.9", "e", true);
  assert.equal(learned.counts.records, 4, "no room: a DIRECT name is left out");
  see("9.9.9.9", "p", false);
  assert.equal(learned.verdict(ip("9.9.9.9")), "proxy");
  assert.deepEqual([learned.counts.records, evictions()], [1, 0]);
});

test("a full record budget of PROXY names: the one that expires first makes room, if it expires before the new one", () => {
  const { learned, see } = book(1);
  for (const [host, ttl] of Object.entries({ a: 10_000, b: 20_000, c: 30_000, d: 40_000 }))
    see("9.9.9.9", host, false, ttl);
  see("9.9.9.9", "short", false, 5_000);
  learned.expire(6_000);
  assert.equal(learned.counts.records, 4, "the short one was not taken");
  see("9.9.9.9", "long", false, 50_000, 6_000);
  learned.expire(41_000);
  assert.equal(learned.counts.records, 1);
  learned.expire(51_000);
  assert.equal(learned.counts.records, 0);
});

test("no room for another address: the DIRECT one observed longest ago goes, a PROXY one only when there is no other", () => {
  const { learned, see, evictions } = book(2);
  see("1.0.0.1", "p", false);
  see("1.0.0.2", "a", true);
  see("1.0.0.3", "b", true);
  assert.deepEqual([...learned.addresses("direct")], ["1.0.0.3"]);
  assert.deepEqual([...learned.addresses("proxy")], ["1.0.0.1"]);
  see("1.0.0.4", "q", false);
  see("1.0.0.5", "c", true);
  assert.deepEqual([...learned.addresses("proxy")], ["1.0.0.4"]);
  assert.equal(evictions(), 3);
});

test("every observation makes an address the most recent one", () => {
  const { learned, see } = book(2);
  see("1.0.0.1", "a", true);
  see("1.0.0.2", "a", true);
  see("1.0.0.1", "a", true);
  see("1.0.0.3", "a", true);
  assert.deepEqual([...learned.addresses("direct")], ["1.0.0.1", "1.0.0.3"]);
});

test("what ran out while it was classified is dropped", () => {
  const { learned, see } = book(2);
  see("1.0.0.1", "a", true, 1_000, 1_000);
  assert.equal(learned.counts.records, 0);
});

const step = fc.record({
  address: fc.integer({ min: 1, max: 6 }),
  host: fc.constantFrom("a", "b", "c"),
  direct: fc.boolean(),
  ttlSeconds: fc.integer({ min: 1, max: 8 }),
  waitSeconds: fc.integer({ min: 0, max: 3 }),
});

test("any history with room enough: an address is PROXY while one unexpired record is; budgets hold without it", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 8 }), (steps, maxEntries) => {
      const { learned, see } = book(maxEntries);
      const model = new Map<string, { direct: boolean; untilMs: number }>();
      const shown = new Map<string, Verdict | null>();
      let nowMs = 0;
      for (const { address, host, direct, ttlSeconds, waitSeconds } of steps) {
        nowMs += waitSeconds * 1000;
        see(`9.0.0.${address}`, host, direct, nowMs + ttlSeconds * 1000, nowMs);
        model.set(`${address} ${host}`, { direct, untilMs: nowMs + ttlSeconds * 1000 });
        const { directAddresses, proxyAddresses, records, maxRecords } = learned.counts;
        assert.ok(directAddresses + proxyAddresses <= maxEntries && records <= maxRecords);
        for (const touched of learned.takeTouched()) shown.set(touched, learned.verdict(touched));
        for (let at = 1; at <= 6; at++) {
          const alive = [...model].filter(
            ([key, { untilMs }]) => key.startsWith(`${at} `) && untilMs > nowMs,
          );
          const expected =
            alive.length === 0 ? null : alive.every(([, record]) => record.direct) ? "direct" : "proxy";
          const verdict = learned.verdict(ip(`9.0.0.${at}`));
          assert.equal(shown.get(`9.0.0.${at}`) ?? null, verdict, "a reader of the changed ones knows all");
          if (maxEntries >= 6) assert.equal(verdict, expected);
        }
      }
    }),
    { numRuns: runs(500) },
  );
});
