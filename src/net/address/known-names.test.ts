import assert from "node:assert/strict";
import { test } from "node:test";
import { NameTable } from "#lib/name-table.ts";
import { bytesOfIp, ipOf } from "./ip.ts";
import { ADDRESS_KINDS, KnownNames, PINNED, pinnedValues, valuesOf } from "./known-names.ts";

const NOW = 1_790_000_000_000;
const V4 = "192.0.2.1";
const V6 = "2001:db8::1";
/** Of the resolver with the number 3. */
const KINDS = { v4: 3 * ADDRESS_KINDS, v6: 3 * ADDRESS_KINDS + 1 } as const;

type Counts = Readonly<Partial<Record<keyof typeof KINDS, number>>>;

/** Knows so many addresses of each family; absent: nothing of it. */
function known(counts: Counts): KnownNames {
  const table = new NameTable();
  const put = (kind: number, count: number | undefined, ip: string): void => {
    if (count === undefined) return;
    const first = count === 0 ? null : bytesOfIp(ipOf(ip));
    table.put(kind, "a.test", valuesOf(count, first), NOW + 1_000, NOW);
  };
  put(KINDS.v4, counts.v4, V4);
  put(KINDS.v6, counts.v6, V6);
  return new KnownNames(table.memory);
}

test("the address is the one that the main thread would dial first, or none where that depends on what is not known", () => {
  const both = { number: 3, ipv6: true, family: null, prefersV6: false } as const;
  const only = (ip: string) => ({ ip, isOnly: true });
  const first = (ip: string) => ({ ip, isOnly: false });
  const cases: readonly (readonly [Counts, Partial<Parameters<KnownNames["addressOf"]>[1]>, unknown])[] = [
    [{}, {}, null],
    [{ v4: 1 }, {}, first(V4)],
    [{ v4: 1, v6: 0 }, {}, only(V4)],
    [{ v4: 2, v6: 0 }, {}, first(V4)],
    [{ v4: 1, v6: 1 }, {}, first(V4)],
    [{ v4: 0 }, {}, null],
    [{ v4: 0, v6: 1 }, {}, only(V6)],
    [{ v4: 0, v6: 0 }, {}, null],
    [{ v6: 1 }, {}, null],
    [{ v4: 1 }, { prefersV6: true }, null],
    [{ v4: 1, v6: 1 }, { prefersV6: true }, first(V6)],
    [{ v4: 1, v6: 0 }, { prefersV6: true }, only(V4)],
    [{ v4: 1, v6: 1 }, { family: 4 }, only(V4)],
    [{ v4: 1, v6: 1 }, { family: 6 }, only(V6)],
    [{ v4: 1 }, { family: 6 }, null],
    [{ v4: 1, v6: 1 }, { family: 6, ipv6: false }, null],
    [{ v4: 1, v6: 1 }, { ipv6: false, prefersV6: true }, only(V4)],
    [{ v4: 0, v6: 1 }, { ipv6: false }, null],
    [{ v4: 1, v6: 1 }, { number: 4 }, null],
  ];
  for (const [counts, choice, wanted] of cases)
    assert.deepEqual(
      known(counts).addressOf("a.test", { ...both, ...choice }, NOW),
      wanted,
      JSON.stringify([counts, choice]),
    );
});

test("of several addresses that the hosts table pins each is taken, and no other", () => {
  const table = new NameTable();
  const names = new KnownNames(table.memory);
  const all = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"].map(ipOf);
  for (const count of [1, 2, 3, 4]) {
    const some = all.slice(0, count);
    const values = pinnedValues(some.map((ip) => bytesOfIp(ip)));
    table.put(PINNED, "a.test", values ?? assert.fail("no room"), NOW + 1_000, NOW);
    const taken = new Set(Array.from({ length: 200 }, () => names.pinned("a.test", NOW)));
    assert.deepEqual(taken, new Set(some));
  }
  const v6 = bytesOfIp(ipOf(V6));
  assert.equal(pinnedValues([]), null);
  assert.equal(pinnedValues([v6, v6]), null);
  assert.equal(pinnedValues([v6, bytesOfIp(ipOf(V4))]), null);
  assert.equal(pinnedValues([...all, ipOf("192.0.2.5")].map((ip) => bytesOfIp(ip))), null);
});

test("what the hosts table pins is kept apart from answers", () => {
  const table = new NameTable();
  table.put(PINNED, "a.test", valuesOf(1, bytesOfIp(ipOf(V6))), NOW + 1_000, NOW);
  const names = new KnownNames(table.memory);
  assert.equal(names.pinned("a.test", NOW), V6);
  assert.equal(names.pinned("a.test", NOW + 1_000), null);
  const choice = { number: 1, ipv6: true, family: null, prefersV6: false };
  assert.equal(names.addressOf("a.test", choice, NOW), null);
});

test("a name that the hosts table does not have is told from one of which nothing is known", () => {
  const table = new NameTable();
  const names = new KnownNames(table.memory);
  assert.equal(names.isUnpinned("a.test", NOW), false);
  table.put(PINNED, "a.test", valuesOf(0, null), NOW + 1_000, NOW);
  table.put(PINNED, "b.test", valuesOf(1, bytesOfIp(ipOf(V4))), NOW + 1_000, NOW);
  assert.deepEqual([names.isUnpinned("a.test", NOW), names.pinned("a.test", NOW)], [true, null]);
  assert.deepEqual([names.isUnpinned("b.test", NOW), names.pinned("b.test", NOW)], [false, V4]);
});
