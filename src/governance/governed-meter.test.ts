import assert from "node:assert/strict";
import { test } from "node:test";
import { governed, policy, settings } from "../../test/support/governed-ledger.ts";

test("a correction takes back what went nowhere, and neither comes back itself nor lets a held piece count", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ downloadBps: 8_000_000 }) }));
  const [busy, other] = [core.session(), core.session()];
  assert.ok(busy.reserve("download", 100_000) > 0);
  core.clock.pass(1);
  assert.equal(other.reserve("download", 10_000), 0);
  assert.ok(busy.reserve("download", 100_000) > 0);
  other.adjust("download", -10_000); // the bucket is in debt: it would hold a piece now
  other[Symbol.dispose]();
  busy.adjust("download", -1000);
  busy[Symbol.dispose]();
  assert.equal(core.governance.status().policies[0]?.counters.download, 99_000);
  await core.apply(null);
});

test("a piece waits for its time and for every gate; what has not passed when the session ends went nowhere", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ downloadBps: 8_000_000 }) }));
  const [one, two] = [core.session(), core.session()];
  assert.equal(one.reserve("download", 36_000) || one.trySend("download", 36_000), 0);
  one.sent?.("download");
  assert.equal(two.reserve("download", 4_000), 0, "the burst is 40,000");
  const closedMs = two.trySend("download", 4_000);
  assert.ok(closedMs > 3 && closedMs < 6, `the gate has 35,000 at once and 1,110 a ms: ${closedMs}`);
  assert.ok(two.trySend("download", 4_000) > 3, "asked too early");
  core.clock.pass(0.01);
  assert.equal(two.trySend("download", 4_000), 0);
  assert.ok(one.reserve("download", 20_000) > 5);
  core.clock.pass(10); // its timer is late
  one[Symbol.dispose]();
  two[Symbol.dispose]();
  assert.equal(core.governance.status().policies[0]?.counters.download, 40_000);
  await core.apply(null);
});

test("the piece that reaches a quota goes as before; what follows has the overage rate, from its burst on", async () => {
  const core = governed();
  const caps = { totalBytes: 100_000, uploadBytes: 0, downloadBytes: 0, windowMs: 3_600_000 };
  const overage = { overageUploadBps: 80_000, overageDownloadBps: 80_000 };
  await core.apply(settings({ global: policy({ quota: { ...caps, ...overage } }) }));
  const meter = core.session();
  assert.equal(meter.reserve("download", 150_000) || meter.trySend("download", 150_000), 0);
  meter.sent?.("download");
  assert.equal(meter.reserve("download", 1500) || meter.trySend("download", 1500), 0);
  meter.sent?.("download");
  const holdMs = meter.reserve("download", 1500);
  assert.ok(holdMs > 149 && holdMs < 151, `${holdMs}`);
  core.clock.pass(holdMs / 1000);
  assert.equal(meter.trySend("download", 1500), 0);
  await core.apply(null);
});

test("what is under way counts at the gate, also where its session goes to other policies, until it is out", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ downloadBps: 8_000_000 }) }));
  const [one, two] = [core.session(), core.session()];
  assert.equal(one.reserve("download", 20_000) || one.trySend("download", 20_000), 0);
  core.clock.pass(0.1); // enough for the gate to be full again, were it out
  assert.equal(two.reserve("download", 20_000), 0);
  assert.ok(two.trySend("download", 20_000) > 0);
  one.sent?.("download"); // perhaps only now
  assert.ok(two.trySend("download", 20_000) > 0);
  core.clock.pass(0.01);
  assert.equal(two.trySend("download", 20_000), 0);
  two[Symbol.dispose]();
  core.clock.pass(0.1);
  assert.equal(
    one.reserve("download", 30_000) || one.trySend("download", 30_000),
    0,
    "a session that ends takes it along",
  );
  await core.apply(null);
});
