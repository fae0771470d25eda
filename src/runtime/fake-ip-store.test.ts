import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { ProfileCache } from "#store/profile-cache.ts";
import { until } from "../../test/support/until.ts";
import { FakeIpStore } from "./fake-ip-store.ts";

const RANGE = { family: 4, range: "198.18.0.0/16", isAnew: false, cycle: false } as const;
const pair = (host: string, last: number | null) =>
  [host, last === null ? null : (`198.18.0.${last}` as Ip)] as const;

function withCache(work: (open: () => ProfileCache) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "weir-fakes-"));
  try {
    work(() => new ProfileCache(join(folder, "cache.db"), SILENT));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("changes in order are there after a restart; another range clears, and a closed store writes nothing", () =>
  withCache((open) => {
    {
      using cache = open();
      const store = new FakeIpStore(cache);
      assert.deepEqual(store.load(), { v4: null, v6: null });
      store.add({ ...RANGE, offset: 5, pairs: [pair("pool", 4), pair("b.org", 5)] });
      store.add({ ...RANGE, offset: 6, pairs: [pair("b.org", null), pair("c.org", 6)] });
    }
    using cache = open();
    const store = new FakeIpStore(cache);
    const { v4, v6 } = store.load();
    assert.equal(v6, null);
    assert.deepEqual([v4?.range, v4?.offset, v4?.cycle], ["198.18.0.0/16", 6, false]);
    assert.deepEqual(new Map(v4?.pairs), new Map([pair("pool", 4), pair("c.org", 6)] as [string, Ip][]));
    store.add({ ...RANGE, range: "10.0.0.0/8", offset: 4, pairs: [["c.org", "198.18.0.6" as Ip]] });
    assert.deepEqual([...(store.load().v4?.pairs ?? [])], [["c.org", "198.18.0.6"]]);
    store.close();
    store.add({ ...RANGE, offset: 9, pairs: [pair("late.org", 9)] });
    assert.equal(store.load().v4?.range, "10.0.0.0/8");
  }));

test("a store that was not told of changes takes all anew; rows that make no sense are nothing", () =>
  withCache((open) => {
    using cache = open();
    const store = new FakeIpStore(cache);
    store.add({ ...RANGE, offset: 5, pairs: [pair("a.org", 4), pair("b.org", 5)] });
    store.add({ ...RANGE, isAnew: true, cycle: true, offset: 5, pairs: [pair("b.org", 5)] });
    const { v4 } = store.load();
    assert.deepEqual([...(v4?.pairs ?? [])], [["b.org", "198.18.0.5"]]);
    assert.deepEqual([v4?.range, v4?.offset, v4?.cycle], [RANGE.range, 5, true]);
    for (const text of ["{", "[]", '{"range":1,"offset":4}']) {
      cache.set("fakeip", "pool", text);
      assert.equal(store.load().v4, null);
    }
  }));

test("thousands of rows of before go in portions, but for those that are written anew", async () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-fakes-"));
  try {
    using cache = new ProfileCache(join(folder, "cache.db"), SILENT);
    const store = new FakeIpStore(cache);
    const pairs = Array.from(
      { length: 2_500 },
      (_, at) => [`n${at}.org`, `198.18.${at >> 8}.9` as Ip] as const,
    );
    store.add({ ...RANGE, offset: 5, pairs });
    store.add({ ...RANGE, isAnew: true, offset: 5, pairs: [pair("n2400.org", 4)] });
    assert.equal(cache.count("fakeip"), 1_501);
    store.add({ ...RANGE, offset: 6, pairs: [pair("n2300.org", 5)] });
    await until("the others have gone", () => cache.count("fakeip") === 3);
    assert.deepEqual(new Map(store.load().v4?.pairs).get("n2300.org"), "198.18.0.5");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
