import assert from "node:assert/strict";
import { test } from "node:test";
import { cidr, governed, policy, settings } from "../../test/support/governed-ledger.ts";
import { DAY, quota, statusOf, total } from "../../test/support/policies.ts";

test("§11.9 an hour that is finished and committed twice is in its day once; the clock may even go back into it", async () => {
  const core = governed();
  const day = Math.floor(core.clock.wall / 1000 / DAY) * DAY;
  core.clock.wall = (day + 1800) * 1000;
  await core.apply(settings({ global: policy() }));
  using meter = core.session();
  const commit = () => core.apply(settings({ global: policy() }));
  const ofDay = (granularity: "day" | "month") =>
    core.governance
      .report({ key: "global:global", granularity, from: day - 40 * DAY, to: day + DAY })
      .reduce((sum, { counters }) => sum + counters.upload, 0);
  meter.reserve("upload", 5);
  core.clock.pass(3600);
  meter.reserve("upload", 7);
  await commit();
  await commit();
  assert.deepEqual([ofDay("day"), ofDay("month")], [12, 12]);
  core.clock.pass(-3600);
  meter.reserve("upload", 1);
  await commit();
  core.clock.pass(2 * 3600);
  await commit();
  assert.deepEqual([ofDay("day"), ofDay("month")], [13, 13]);
  await core.apply(null);
});

test("what was counted is there after a restart, from commits and from the journal alone", async () => {
  for (const ends of ["closed", "killed"]) {
    const first = governed();
    const used = settings({ global: policy({ quota: quota(1e6) }) });
    await first.apply(used);
    first.session().reserve("upload", 100);
    (await first.governance.prepare(used, { tolerant: false })).abandon(); // commits
    first.session().reserve("upload", 23);
    if (ends === "closed") first.governance[Symbol.dispose]();
    else await first.governance.tick();
    const second = governed(first.clock, first.store);
    await second.apply(used);
    const { counters, rolling } = statusOf(second, "global");
    assert.deepEqual([counters.upload, counters.connections, rolling.upload], [123, 2, 123], ends);
    assert.equal(total(second, "global:global"), 123);
    first.governance[Symbol.dispose]();
    second.governance[Symbol.dispose]();
  }
});

test("a clock that is set ahead behind a start of the machine is no time that has passed, though nothing was counted since", async () => {
  const used = settings({ global: policy({ quota: quota(1e6) }) });
  const first = governed();
  const { clock, store } = first;
  await first.apply(used);
  first.session().reserve("upload", 100);
  (await first.governance.prepare(used, { tolerant: false })).abandon(); // commits
  clock.bootId = "second";
  clock.monotonic = 0;
  clock.pass(20);
  const second = governed(clock, store);
  await second.apply(used);
  await second.governance.tick();
  clock.wall += 400 * DAY * 1000;
  const third = governed(clock, store);
  await third.apply(used);
  assert.equal(statusOf(third, "global").rolling.upload, 100);
  for (const { governance } of [first, second, third]) governance[Symbol.dispose]();
});

test("a quota that is reached is stored at once, with what the reports have of it, and survives a crash", async () => {
  const first = governed();
  const used = settings({ global: policy({ quota: quota(1000) }) });
  await first.apply(used);
  await new Promise(setImmediate);
  using meter = first.session();
  meter.reserve("upload", 10);
  await first.governance.tick(); // a journal record that the urgent commit overtakes
  meter.reserve("upload", 1000);
  await new Promise(setImmediate);
  const second = governed(first.clock, first.store);
  await second.apply(used);
  const { counters, overQuota, rolling } = statusOf(second, "global");
  assert.deepEqual([counters.upload, counters.exceeded, overQuota, rolling.upload], [1010, 1, true, 1010]);
  assert.equal(total(second, "global:global"), 1010);
  first.governance[Symbol.dispose]();
  second.governance[Symbol.dispose]();
});

test("a commit that fails changes nothing: the old policies go on, and the next try has everything", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ id: "old" }) }));
  using meter = core.session();
  meter.reserve("upload", 4);
  core.store.failure = new Error("no space");
  await assert.rejects(() => core.apply(settings({ global: policy({ id: "new" }) })), /no space/);
  assert.equal(statusOf(core, "old").counters.upload, 4);
  assert.equal(core.governance.revision, 1);
  core.store.failure = null;
  await core.apply(settings({ global: policy({ id: "new" }) }));
  assert.ok(core.store.parts.get("policies")?.has("old"));
  await core.apply(null);
});

test("a full store drops the oldest report series only, a tenth at a time", async () => {
  const sizeOf = (bytes: Map<string, Uint8Array> | undefined) => (bytes?.size ?? 0) * 1000;
  const core = governed(undefined, undefined, (store) => sizeOf(store.parts.get("reports")));
  const devices = Array.from({ length: 30 }, (_, at) => ({
    ...policy({ id: `d${at}` }),
    mac: null,
    sourceCidrs: [cidr(`192.0.2.${at}`)],
  }));
  await core.apply(settings({ devices }));
  for (let at = 0; at < 30; at++) {
    core.session({ ip: `192.0.2.${at}` }).reserve("upload", 1);
    core.governance.status();
    core.clock.pass(1);
  }
  await core.apply(settings({ devices, maxStoreSizeBytes: 100_000 }));
  assert.equal(core.store.parts.get("reports")?.size, 30);
  await assert.rejects(() => core.apply(settings({ devices, maxStoreSizeBytes: 20_000 })), /max-store-size/);
  await core.apply(settings({ devices, maxStoreSizeBytes: 30_000 }));
  core.session({ ip: "192.0.2.29" });
  const more = { ...policy({ id: "more" }), mac: null, sourceCidrs: [cidr("198.51.100.1")] };
  await core.apply(settings({ devices: [...devices, more], maxStoreSizeBytes: 30_000 }));
  core.session({ ip: "198.51.100.1" }).reserve("upload", 1);
  (await core.governance.prepare(settings(), { tolerant: false })).abandon(); // commits
  assert.equal(core.store.parts.get("reports")?.size, 27, "31 would not fit; a tenth went");
  assert.equal(total(core, "device:d29"), 1);
  assert.equal(total(core, "device:d0"), 0);
  assert.equal(statusOf(core, "d0").counters.upload, 1);
  await core.apply(null);
});

test("orphans go after their retention, configured policies never", async () => {
  const core = governed();
  const a = { ...policy({ id: "a" }), mac: null, sourceCidrs: [cidr("192.0.2.0/24")] };
  await core.apply(settings({ global: policy(), devices: [a] }));
  core.session().reserve("upload", 1);
  await core.apply(settings({ global: policy() }));
  core.clock.pass(91 * DAY);
  await core.apply(settings({ global: policy() }));
  assert.deepEqual([...(core.store.parts.get("policies")?.keys() ?? [])], ["global"]);
  await core.apply(settings({ global: policy(), devices: [a] }));
  assert.deepEqual([statusOf(core, "a").counters.upload, statusOf(core, "global").counters.upload], [0, 1]);
  await core.apply(null);
});
