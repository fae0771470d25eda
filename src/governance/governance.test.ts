import assert from "node:assert/strict";
import { test } from "node:test";
import { cidr, governed, policy, settings } from "../../test/support/governed-ledger.ts";
import { keysOf, MOST_KEYS } from "./reports.ts";
import type { RuleSettings } from "./settings.ts";
import { quota, rule, VIDEO, statusOf, total } from "../../test/support/policies.ts";

test("§11.1 one flow of all four kinds counts in four policies and ten series", async () => {
  const core = governed();
  await core.apply(
    settings({
      global: policy(),
      devices: [{ ...policy({ id: "phone" }), mac: null, sourceCidrs: [cidr("192.0.2.0/24")] }],
      rules: [rule("video")],
      targets: [{ ...policy({ id: "group" }), kind: "group", target: "Proxy" }],
    }),
  );
  using meter = core.session({ rule: VIDEO, chain: ["Proxy", "node"] });
  meter.reserve("upload", 100);
  meter.reserve("download", 23);
  for (const id of ["global", "phone", "video", "group"])
    assert.equal(statusOf(core, id).counters.upload, 100);
  const keys = keysOf([
    { dimension: "global", id: "global" },
    { dimension: "device", id: "phone" },
    { dimension: "rule", id: "video" },
    { dimension: "target", id: "group" },
  ]);
  assert.equal(keys.length, 10);
  assert.ok(keys.includes("device:phone|rule:video"));
  for (const key of keys) assert.equal(total(core, key), 123, key);
});

test("a target is the node for kind proxy and an enclosing group for kind group", async () => {
  const core = governed();
  const target = (id: string, kind: "proxy" | "group", name: string) => ({
    ...policy({ id }),
    kind,
    target: name,
  });
  await core.apply(
    settings({
      targets: [target("a", "proxy", "node"), target("b", "group", "node"), target("c", "group", "inner")],
    }),
  );
  using meter = core.session({ chain: ["outer", "inner", "node"] });
  meter.reserve("upload", 1);
  assert.deepEqual(
    ["a", "b", "c"].map((id) => statusOf(core, id).counters.upload),
    [1, 0, 1],
  );
});

test("several devices may hold one source; a mapped or foreign address does not confuse them", async () => {
  const core = governed();
  const device = (id: string, ...networks: string[]) => ({
    ...policy({ id }),
    mac: null,
    sourceCidrs: networks.map(cidr),
  });
  await core.apply(
    settings({ devices: [device("lan", "192.0.2.0/24", "2001:db8::/32"), device("tv", "192.0.2.7/32")] }),
  );
  for (const ip of ["192.0.2.7", "192.0.2.8", "2001:db8::1", "198.51.100.1"])
    core.session({ ip }).reserve("upload", 1);
  assert.deepEqual([statusOf(core, "lan").counters.upload, statusOf(core, "tv").counters.upload], [3, 1]);
});

test("at most 128 keys a session, single ones first", async () => {
  const policies = Array.from({ length: 40 }, (_, at) => ({ dimension: "device" as const, id: `d${at}` }));
  const keys = keysOf(policies);
  assert.equal(keys.length, MOST_KEYS);
  assert.ok(keys.slice(0, 40).every((key) => !key.includes("|")));
});

test("§11.4 a quota: over with the transfer that reaches it, then the overage rate; free after window and width", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ quota: quota(1000) }) }));
  using meter = core.session();
  assert.equal(meter.reserve("download", 999), 0);
  assert.equal(statusOf(core, "global").overQuota, false);
  const { commits } = core.store;
  assert.equal(meter.reserve("download", 1), 0, "the transfer that reaches it still goes as before");
  assert.equal(statusOf(core, "global").overQuota, true);
  await new Promise(setImmediate);
  assert.ok(core.store.commits > commits, "committed before the next tick");
  assert.equal(meter.reserve("download", 1500), 0, "the burst");
  assert.ok(meter.reserve("download", 1000) > 900, "1,000 bytes a second");
  assert.equal(statusOf(core, "global").counters.exceeded, 1);
  core.clock.pass(3600 + 60);
  assert.equal(statusOf(core, "global").overQuota, false);
  assert.equal(meter.reserve("download", 10), 0);
  await core.apply(null);
});

test("a quota overshoots by the piece that reaches it and no more", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ quota: quota(1_000_000) }) }));
  const meters = Array.from({ length: 16 }, () => core.session());
  let moved = 0;
  for (let at = 0; !statusOf(core, "global").overQuota; at++) {
    meters[at % meters.length]?.reserve("download", 65_536);
    moved += 65_536;
  }
  assert.ok(moved - 1_000_000 <= 65_536);
  assert.ok((meters[3]?.reserve("download", 65_536) ?? 0) > 0, "every other session feels it at once");
  await core.apply(null);
});

test("whatever has been read, the piece that reaches a quota goes 64 KiB beyond it at most", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ quota: quota(10_000_000) }) }));
  const meters = Array.from({ length: 8 }, () => core.session());
  const arrived = 3_000_000; // in the kernel's buffers, as a worker sees it
  for (let at = 0; !statusOf(core, "global").overQuota; at++) {
    const meter = meters[at % meters.length];
    meter?.reserve("download", Math.min(arrived, meter.pieceBytes));
  }
  const { counters } = statusOf(core, "global");
  assert.ok(counters.download - 10_000_000 <= 65_536, `${counters.download}`);
  await core.apply(null);
});

test("§11.3 a datagram that one of two policies refuses costs the other nothing and is not counted", async () => {
  const core = governed();
  await core.apply(
    settings({
      global: policy({ uploadBps: 8e6 }),
      devices: [
        { ...policy({ id: "slow", uploadBps: 8000 }), mac: null, sourceCidrs: [cidr("192.0.2.0/24")] },
      ],
    }),
  );
  using slow = core.session();
  using free = core.session({ ip: "198.51.100.1" });
  assert.ok(slow.admit("upload", 1500));
  for (let at = 0; at < 1000; at++) assert.equal(slow.admit("upload", 1500), false);
  assert.ok(free.admit("upload", 33_000), "the 35,000 that go at once are there but for the one that passed");
  assert.equal(statusOf(core, "slow").counters.upload, 1500);
  await core.apply(null);
});

test("a piece that was held back when its session ended is neither counted nor paid for", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ uploadBps: 80_000, quota: quota(1e6) }) }));
  const meter = core.session();
  meter.reserve("upload", 1500);
  assert.ok(meter.reserve("upload", 1500) > 0);
  meter[Symbol.dispose]();
  const { counters, rolling, activeConnections } = statusOf(core, "global");
  assert.deepEqual([counters.upload, rolling.upload, activeConnections], [1500, 1500, 0]);
  await core.apply(null);
});

test("a line of a sub-rule list counts for its own policy and for that of the SUB-RULE", async () => {
  const core = governed();
  const entered = { type: "SUB-RULE", payload: "(NETWORK,TCP)", target: "list" };
  const outer: RuleSettings = { ...rule("outer"), ...entered, type: "SubRules" };
  await core.apply(settings({ rules: [rule("video"), outer, rule("other", "other.example")] }));
  using meter = core.session({ rule: VIDEO, entered });
  meter.reserve("upload", 10);
  const uploads = ["video", "outer", "other"].map((id) => statusOf(core, id).counters.upload);
  assert.deepEqual(uploads, [10, 10, 0]);
});

test("live sessions are bound anew; a connection counts once; no byte is counted twice", async () => {
  const core = governed();
  using meter = core.session({ rule: VIDEO });
  meter.reserve("upload", 5);
  await core.apply(settings({ global: policy({ id: "all" }) }));
  assert.equal(
    statusOf(core, "all").activeConnections,
    1,
    "picked up although nothing matched when it opened",
  );
  meter.reserve("upload", 7);
  await core.apply(settings({ global: policy({ id: "all", uploadBps: 8e6 }), rules: [rule("video")] }));
  meter.reserve("upload", 11);
  const { counters } = statusOf(core, "all");
  assert.deepEqual([counters.upload, counters.connections], [18, 1]);
  assert.deepEqual(statusOf(core, "video").counters, {
    upload: 11,
    download: 0,
    connections: 1,
    exceeded: 0,
  });
  assert.equal(core.governance.revision, 2);
  await core.apply(null);
  assert.equal(meter.reserve("upload", 1e9), 0);
});

test("§11.5 reordered rules keep counters; another id keeps history; another content is a new generation", async () => {
  const core = governed();
  const at = (...rules: RuleSettings[]) => core.apply(settings({ global: policy({ id: "g" }), rules }));
  await at(rule("a"), rule("b", "other.example"));
  using meter = core.session({ rule: VIDEO });
  meter.reserve("upload", 10);
  await at(rule("b", "other.example"), rule("a"));
  assert.equal(statusOf(core, "a").counters.upload, 10);
  await at(rule("renamed"), rule("b", "other.example"));
  assert.equal(statusOf(core, "renamed").counters.upload, 10);
  assert.equal(total(core, "rule:renamed"), 10);
  assert.equal(total(core, "global:g|rule:renamed"), 10);
  await at(rule("renamed", "third.example"));
  assert.deepEqual([statusOf(core, "renamed").counters.upload, statusOf(core, "renamed").generation], [0, 2]);
  assert.equal(total(core, "rule:renamed@1"), 10);
  assert.equal(total(core, "global:g|rule:renamed@1"), 10);
  await at(rule("b", "example.video"), rule("x", "other.example"));
  assert.equal(statusOf(core, "b").generation, 2, "the id was another rule's");
  await core.apply(null);
});

test("two rules change places in one step: each history goes with its content", async () => {
  const core = governed();
  await core.apply(settings({ rules: [rule("a"), rule("b", "other.example")] }));
  using meter = core.session({ rule: VIDEO });
  meter.reserve("upload", 10);
  await core.apply(settings({ rules: [rule("b"), rule("a", "other.example")] }));
  assert.deepEqual([statusOf(core, "a").counters.upload, statusOf(core, "b").counters.upload], [0, 10]);
  assert.equal(total(core, "rule:b"), 10);
  await core.apply(null);
});

test("a device goes on under new addresses; a policy that is away comes back as it was", async () => {
  const core = governed();
  const phone = (network: string) => ({
    ...policy({ id: "phone" }),
    mac: null,
    sourceCidrs: [cidr(network)],
  });
  await core.apply(settings({ devices: [phone("192.0.2.1/32")] }));
  core.session().reserve("upload", 9);
  await core.apply(settings({ devices: [phone("192.0.2.0/24")] }));
  assert.deepEqual([statusOf(core, "phone").counters.upload, statusOf(core, "phone").generation], [9, 1]);
  await core.apply(settings());
  await core.apply(settings({ devices: [phone("192.0.2.0/24")] }));
  assert.equal(statusOf(core, "phone").counters.upload, 9);
  await core.apply(null);
});
