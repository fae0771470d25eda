import assert from "node:assert/strict";
import { NO_EVENTS } from "#core/events.ts";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { ip, named } from "../../test/support/routing.ts";
import type { Decision } from "#core/router.ts";
import { KernelDirect } from "./kernel-direct.ts";
import type { DirectClassifier } from "./direct-classifier.ts";
import type { Changes, Plane } from "./plane.ts";

/** A kernel that remembers; `hold` keeps it from answering. */
class MemoryPlane implements Plane {
  readonly direct = new Set<Ip>();
  readonly proxy = new Set<Ip>();
  writes = 0;
  fails = false;
  hold: Promise<void> = Promise.resolve();

  async apply({ direct, proxy }: Changes): Promise<void> {
    await this.#begin();
    for (const [set, { add, remove }] of [
      [this.direct, direct],
      [this.proxy, proxy],
    ] as const) {
      for (const address of remove) assert.ok(set.delete(address), `${address} is not there`);
      for (const address of add)
        assert.ok(!set.has(address) && set.add(address), `${address} is there already`);
    }
  }

  async replace(direct: readonly Ip[], proxy: readonly Ip[]): Promise<void> {
    await this.#begin();
    for (const [set, all] of [
      [this.direct, direct],
      [this.proxy, proxy],
    ] as const) {
      set.clear();
      for (const address of all) set.add(address);
    }
  }

  async #begin(): Promise<void> {
    this.writes++;
    await this.hold;
    if (this.fails) throw new Error("the kernel refuses");
  }
}

function world(maxEntries = 100, before: readonly Plane[] = []) {
  const plane = new MemoryPlane();
  const state = { nowMs: 0, signature: "1", proxied: new Set<string>(["p.org"]) };
  const classifier: DirectClassifier = {
    classify: (host) => ({ direct: !state.proxied.has(host ?? ""), reason: "" }),
    isLearnable: (address) => !address.startsWith("10."),
    isDirect: ({ outbound }) => outbound.name === "DIRECT",
    signature: () => state.signature,
  };
  const direct = new KernelDirect(SILENT, NO_EVENTS, () => state.nowMs);
  direct.use(classifier);
  const planes = [...before, plane];
  const consumer = direct.attach({ maxEntries, inbound: { ruleList: null, target: null }, planes });
  const answered = async (host: string, ...addresses: string[]) =>
    direct.answered({ host, addresses: addresses.map((text) => ({ ip: ip(text), ttlMs: 60_000 })) });
  return { direct, plane, consumer, state, classifier, answered };
}

function decisionOf(outbound: string, host: string, address: string | null): Decision {
  const destination = { host, ip: address === null ? null : ip(address), port: 443 };
  return {
    outbound: named(outbound),
    chain: [outbound],
    groups: [],
    destination,
    dnsMode: "normal",
    rule: null,
    unruled: false,
    facts: {},
  };
}

test("kernel-direct.md §8.1: the kernel has the address before the answer goes out; the end of its TTL takes it out", async () => {
  const { direct, plane, consumer, answered, state } = world();
  using _ = direct;
  await answered("a.org", "9.9.9.9", "2001:db8::1", "10.1.1.1");
  assert.deepEqual([...plane.direct], ["9.9.9.9", "2001:db8::1"]);
  await answered("a.org", "9.9.9.9");
  assert.equal(plane.writes, 1, "an equal answer writes nothing");
  state.nowMs = 62_000;
  consumer.sweep(state.nowMs);
  await consumer.learn([], state.nowMs);
  assert.equal(plane.direct.size, 0);
});

test("proxy wins, at once", async () => {
  const { direct, plane, answered } = world();
  using _ = direct;
  await answered("a.org", "9.9.9.9");
  await answered("p.org", "9.9.9.9");
  assert.deepEqual([[...plane.direct], [...plane.proxy]], [[], ["9.9.9.9"]]);
  await answered("a.org", "9.9.9.9");
  assert.equal(plane.direct.size, 0);
});

test("kernel-direct.md §2.3: DIRECT flows teach, before the dial and after it; others do not", async () => {
  const { direct, plane, consumer } = world();
  using _ = direct;
  direct.decided(decisionOf("PROXY", "a.org", "9.9.9.1"));
  direct.decided(decisionOf("DIRECT", "a.org", "9.9.9.2"));
  direct.decided(decisionOf("DIRECT", "b.org", null));
  direct.connected(decisionOf("DIRECT", "b.org", null), () => ip("9.9.9.3"));
  direct.decided(decisionOf("DIRECT", "p.org", "9.9.9.4"));
  direct.connected(decisionOf("DIRECT", "c.org", "9.9.9.5"), () => assert.fail("the decision said where"));
  await consumer.learn([], 0);
  assert.deepEqual([[...plane.direct], [...plane.proxy]], [["9.9.9.2", "9.9.9.3"], ["9.9.9.4"]]);
});

test("a sniffed name that was not dialled teaches nothing of the address, one that was dialled does", async () => {
  const { direct, plane, consumer } = world();
  using _ = direct;
  const sniffed = (host: string | null, address: string | null): Decision => ({
    ...decisionOf("DIRECT", "a.org", address),
    destination: { host, ip: address === null ? null : ip(address), port: 443 },
    sniffedHost: "a.org",
  });
  direct.decided(sniffed(null, "9.9.9.1"));
  direct.decided(sniffed("p.org", "9.9.9.2")); // the answer that the client got said so
  direct.connected(sniffed("a.org", null), () => ip("9.9.9.3"));
  await consumer.learn([], 0);
  assert.deepEqual([[...plane.direct], [...plane.proxy]], [["9.9.9.3"], ["9.9.9.2"]]);
});

test("kernel-direct.md §8.5: a group that changes sides empties the set when it is looked at", async () => {
  const { direct, plane, answered, state } = world();
  using _ = direct;
  await answered("a.org", "9.9.9.9");
  state.signature = "0";
  direct.check();
  state.proxied.add("b.org");
  await answered("b.org", "9.9.9.8");
  assert.deepEqual([[...plane.direct], [...plane.proxy]], [[], ["9.9.9.8"]]);
});

test("suspended: the sets are empty when it settles, and nothing is learnt until there is a judge again", async () => {
  const { direct, plane, answered, classifier } = world();
  using _ = direct;
  await answered("a.org", "9.9.9.9");
  await direct.suspend();
  assert.equal(plane.direct.size, 0);
  await answered("a.org", "9.9.9.9");
  assert.equal(plane.direct.size, 0);
  direct.use(classifier);
  await answered("a.org", "9.9.9.9");
  assert.equal(plane.direct.size, 1);
});

test("publications run one at a time and the newest state wins", async () => {
  const { direct, plane, answered } = world();
  using _ = direct;
  const gate = Promise.withResolvers<void>();
  plane.hold = gate.promise;
  const first = answered("a.org", "9.9.9.1");
  const later = Array.from({ length: 50 }, (_, at) => answered(`${at}.org`, `9.9.8.${at}`));
  const proxied = answered("p.org", "9.9.9.1");
  gate.resolve();
  await Promise.all([first, ...later, proxied]);
  assert.equal(plane.direct.size, 50);
  assert.deepEqual([...plane.proxy], ["9.9.9.1"]);
  assert.ok(plane.writes <= 3, `${plane.writes} writes`);
});

test("a write that failed is repaired by the next one", async () => {
  const { direct, plane, answered } = world();
  using _ = direct;
  plane.fails = true;
  await answered("a.org", "9.9.9.1");
  plane.fails = false;
  await answered("b.org", "9.9.9.2");
  assert.deepEqual([...plane.direct], ["9.9.9.1", "9.9.9.2"]);
});

test("a plane that fails keeps no other one from forgetting", async () => {
  const failing = new MemoryPlane();
  const { direct, plane, answered } = world(100, [failing]);
  using _ = direct;
  await answered("a.org", "9.9.9.1");
  failing.fails = true;
  await answered("b.org", "9.9.9.2");
  assert.deepEqual([...plane.direct], ["9.9.9.1", "9.9.9.2"]);
  await direct.clear();
  assert.equal(plane.direct.size, 0);
  failing.fails = false;
  await answered("p.org", "9.9.9.1");
  assert.deepEqual([failing.direct.size, [...failing.proxy]], [0, ["9.9.9.1"]]);
});

test("a consumer that leaves empties its planes", async () => {
  const { direct, plane, answered, consumer } = world();
  await answered("a.org", "9.9.9.9");
  await direct.detach(consumer);
  assert.equal(plane.direct.size, 0);
  await answered("a.org", "9.9.9.9");
  assert.equal(plane.direct.size, 0);
});
