import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Ip } from "#core/session.ts";
import { atOnce } from "#lib/steps.ts";
import { FakePool, type FakePoolState } from "./fake-pool.ts";

const range = (ip: string, bits: number) => ({ ip: ip as Ip, bits });
/** As a store gives it back. */
function stateOf(pool: FakePool): FakePoolState {
  const pairs = Array.from(pool.hosts(), (host) => [host, pool.ipOfHost(host) as Ip] as const);
  return { range: pool.range, offset: pool.offset, cycle: pool.cycle, pairs };
}
const pool = (ip = "198.18.0.1", bits = 16) => new FakePool(range(ip, bits), () => {});

test("dns.md §16.1 the first name gets .4, the second .5, the first again .4", () => {
  const fakes = pool();
  assert.equal(fakes.allocate("a.org"), "198.18.0.4");
  assert.equal(fakes.allocate("b.org"), "198.18.0.5");
  assert.equal(fakes.allocate("a.org"), "198.18.0.4");
  assert.equal(fakes.hostOf("198.18.0.5" as Ip), "b.org");
  assert.equal(fakes.gateway, "198.18.0.1");
});

test("what counts as fake", () => {
  const fakes = pool("198.18.0.1", 29);
  const fake = (last: number) => fakes.isFake(`198.18.0.${last}` as Ip);
  assert.deepEqual([1, 2, 3, 4, 6, 7, 8].map(fake), [false, true, true, true, true, false, false]);
  assert.equal(fakes.isFake("::1" as Ip), false);
});

test("a full range starts over and the old pair is gone in both directions", () => {
  const fakes = pool("198.18.0.1", 29); // .4, .5, .6
  const [first] = ["a", "b", "c"].map((host) => fakes.allocate(host));
  assert.equal(fakes.allocate("d"), first);
  assert.equal(fakes.cycle, true);
  assert.equal(fakes.has("a"), false);
  assert.equal(fakes.hostOf(first as Ip), "d");
  assert.notEqual(fakes.allocate("a"), first);
});

test("in a full range a name that is in use keeps its address", () => {
  const fakes = pool("198.18.0.1", 29);
  const [first, second] = ["a", "b", "c"].map((host) => fakes.allocate(host));
  assert.equal(fakes.hostOf(first as Ip), "a");
  assert.equal(fakes.allocate("d"), second);
  assert.equal(fakes.hostOf(first as Ip), "a");
});

test("IPv6 ranges of any size", () => {
  for (const bits of [48, 64, 96, 118]) {
    const fakes = pool("fdfe:dcba:9876::1", bits);
    assert.equal(fakes.allocate("a.org"), "fdfe:dcba:9876::4");
    assert.equal(fakes.hostOf("fdfe:dcba:9876::4" as Ip), "a.org");
    assert.equal(fakes.isFake("fdfe:dcba:9875::4" as Ip), false);
  }
});

test("too small a range is the user's mistake", () => {
  assert.throws(() => pool("198.18.0.1", 30), /too small/);
});

test("both directions agree, whatever is asked", () => {
  const host = fc.stringMatching(/^[a-f]{1,2}$/);
  fc.assert(
    fc.property(fc.array(host, { maxLength: 200 }), (hosts) => {
      const live = new Map<string, Ip>();
      const fakes: FakePool = new FakePool(range("198.18.0.1", 28), (name) => {
        const ip = fakes.ipOfHost(name);
        if (ip === null) live.delete(name);
        else live.set(name, ip);
      });
      for (const each of hosts) assert.equal(fakes.hostOf(fakes.allocate(each)), each);
      assert.equal(new Set(live.values()).size, live.size);
      for (const [name, ip] of live) assert.equal(fakes.hostOf(ip), name);
      const copy = new FakePool(range("198.18.0.1", 28), () => {});
      atOnce(copy.restore(stateOf(fakes)));
      assert.deepEqual(stateOf(copy), stateOf(fakes));
    }),
  );
});

test("dns.md §16.2 state of the same range goes on, of another range it starts over", () => {
  const old = pool();
  old.allocate("a.org");
  old.allocate("b.org");
  const same = pool();
  atOnce(same.restore(stateOf(old)));
  assert.equal(same.allocate("b.org"), "198.18.0.5");
  assert.equal(same.allocate("c.org"), "198.18.0.6");
  const other = pool("10.9.0.1", 16);
  atOnce(other.restore(stateOf(old)));
  assert.equal(other.allocate("b.org"), "10.9.0.4");
  const torn = pool();
  const pairs = [["x", "10.0.0.1" as Ip]] as const;
  atOnce(torn.restore({ range: torn.range, offset: 70_000, cycle: false, pairs }));
  assert.equal(torn.allocate("b.org"), "198.18.0.4");
});

test("flush starts over", () => {
  const fakes = pool();
  const ip = fakes.allocate("a.org");
  fakes.flush();
  assert.equal(fakes.hostOf(ip), null);
  assert.equal(fakes.allocate("z.org"), "198.18.0.4");
});

test("a pool becomes another one's state, and reports the names of which that changes anything", () => {
  const changed: string[] = [];
  const own = new FakePool(range("198.18.0.1", 16), (host) => void changed.push(host));
  const other = pool();
  for (const host of ["same", "moved", "gone"]) own.allocate(host);
  for (const host of ["same", "new", "moved"]) other.allocate(host);
  changed.length = 0;
  atOnce(own.become(other.state));
  assert.deepEqual(changed.toSorted(), ["gone", "moved", "new"]);
  assert.deepEqual(stateOf(own), stateOf(other));
  assert.equal(own.allocate("next"), other.allocate("next"));
  atOnce(own.become(pool("198.19.0.1").state));
  assert.equal(own.has("same"), true, "a state of another range changes nothing");
  atOnce(own.become(pool().state));
  assert.deepEqual([...own.hosts()], []);
});

test("an address of another process replaces what the pool had of both", () => {
  const own = pool();
  const [first, second] = ["a", "b"].map((host) => own.allocate(host));
  assert.equal(own.adopt("b", first as Ip), true);
  assert.deepEqual([own.hostOf(first as Ip), own.hostOf(second as Ip), own.has("a")], ["b", null, false]);
  for (const ip of ["198.18.0.1", "198.19.0.4", "::1"]) assert.equal(own.adopt("c", ip as Ip), false, ip);
});
