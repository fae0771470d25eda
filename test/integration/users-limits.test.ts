import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "#core/errors.ts";
import type { LimitsChange, UserView } from "#core/users.ts";
import { governed, policy, settings } from "../support/governed-ledger.ts";
import { type FakeInbound, listener } from "../support/users-bench.ts";
import { changedLimits, NO_LIMITS } from "#users/limits.ts";
import { HOUR_MS, DAY_MS, LimitedUser, refusal, OPEN } from "../support/limited-user.ts";

test("a quota: the piece that uses it up passes, what follows waits for the cut, datagrams are dropped", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ quota: { totalBytes: 1000 } });
  const meter = bench.meter();
  assert.equal(meter.reserve("upload", 600), 0);
  assert.equal(meter.reserve("download", 600), 0);
  assert.ok(meter.reserve("upload", 10) >= 1000);
  assert.equal(meter.admit("download", 10), false);
  meter[Symbol.dispose](); // as the cut does: what was held never went out
  await bench.pass(200);
  assert.equal(bench.status, "limited");
  const { quota, uploadBytes, downloadBytes } = bench.user;
  assert.deepEqual([uploadBytes, downloadBytes], [600, 600]);
  assert.deepEqual(quota, { uploadBytes: 600, downloadBytes: 600, resetsAtMs: null });
  assert.match(refusal(bench.enter()), /limited/);
  await bench.limit({ quota: { totalBytes: 2000 } });
  assert.equal(bench.status, "active");
  await bench.limit({ quota: { totalBytes: 1100 } });
  assert.equal(bench.status, "limited", "at once, not at the next look");
  await bench.admin.resetTraffic(bench.id, bench.revision("edge"));
  assert.equal(bench.status, "active");
  await bench.limit({ quota: { totalBytes: 0 } });
  assert.deepEqual([bench.status, bench.user.quota, bench.user.limits], ["active", null, NO_LIMITS]);
});

for (const period of [{}, { reset: "month" }, { window: "24h" }])
  test(`pieces shrink before a quota: the last one goes 64 KiB beyond it at most, ${JSON.stringify(period)}`, async () => {
    using bench = await LimitedUser.open();
    await bench.limit({ quota: { totalBytes: 1_000_000, ...period } });
    const meter = bench.meter();
    assert.equal(meter.reserve("download", 100_000), 0);
    assert.equal(meter.pieceBytes, 900_000);
    assert.equal(meter.reserve("upload", 890_000), 0);
    assert.equal(meter.pieceBytes, 65_536, "no smaller: each costs the threads a round trip");
    await bench.limit({ quota: { totalBytes: 0 } });
    assert.equal(meter.pieceBytes, OPEN.pieceBytes);
  });

test("a piece behind the end of a quota waits for the cut however late it comes, and passes where there is room again", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ quota: { totalBytes: 1000 } });
  const meter = bench.meter();
  assert.equal(meter.reserve("upload", 1000), 0);
  assert.ok(meter.reserve("upload", 10) > 0);
  for (let times = 0; times < 3; times++) {
    bench.monotonicMs += 60_000; // the medium takes nothing, so the listener has the user still
    assert.ok(meter.trySend("upload", 10) > 0);
  }
  await bench.limit({ quota: { totalBytes: 5000 } });
  bench.monotonicMs += 60_000;
  assert.equal(meter.trySend("upload", 10), 0);
  assert.equal(bench.user.uploadBytes, 1010);
});

test("what the cut gives back of a used up quota lets no one in again, time and more quota do", async () => {
  using bench = await LimitedUser.open();
  for (const [period, laterMs] of [
    [{ reset: "day" }, DAY_MS] as const,
    [{ window: "1h" }, 2 * HOUR_MS] as const,
  ]) {
    await bench.limit({ quota: { totalBytes: 1000, ...period } });
    const meter = bench.meter();
    meter.reserve("download", 900);
    meter.reserve("download", 300); // let through, and then the client did not read
    await bench.pass(200);
    assert.equal(bench.status, "limited");
    meter.adjust("download", -100);
    await bench.pass(200);
    meter.adjust("download", -150);
    await bench.pass(200);
    assert.deepEqual([bench.status, bench.user.quota?.downloadBytes], ["limited", 950]);
    await bench.admin.update(bench.id, { revision: bench.revision("edge"), name: "renamed" });
    assert.equal(bench.status, "limited");
    await bench.limit({ quota: { totalBytes: 1001, ...period } });
    assert.equal(bench.status, "active");
    meter.reserve("download", 300);
    meter.adjust("download", -300);
    await bench.pass(200);
    assert.equal(bench.status, "limited");
    await bench.pass(laterMs);
    assert.equal(bench.status, "active", JSON.stringify(period));
    meter.reserve("download", 2000);
    meter.adjust("download", -2000);
    await bench.pass(200);
    assert.equal(bench.status, "active", "nothing was used");
  }
});

test("a cycle ends the quota's usage, the counters go on, and both survive a restart", async () => {
  using bench = await LimitedUser.open();
  bench.nowMs = Date.parse("2026-11-29T12:00:00Z");
  await bench.limit({ quota: { totalBytes: 1000, reset: "month" } });
  bench.meter().reserve("upload", 1500);
  await bench.pass(200);
  assert.equal(bench.status, "limited");
  await bench.pass(DAY_MS);
  bench.restart();
  const [edge] = (await bench.adopt([listener("edge"), listener("side")])) as [FakeInbound];
  assert.deepEqual([edge.users.length, bench.user.status], [0, "limited"], "no gap at the start");
  assert.equal(bench.user.quota?.resetsAtMs, Date.parse("2026-12-01T00:00:00Z"));
  bench.nowMs = Date.parse("2026-12-01T00:00:00Z") - 1;
  await bench.users.watchLimits();
  assert.equal(edge.users.length, 0);
  bench.nowMs++;
  await bench.users.watchLimits();
  assert.deepEqual([edge.users.length, bench.user.quota?.uploadBytes, bench.user.uploadBytes], [1, 0, 1500]);
  bench.nowMs = Date.parse("2026-11-30T12:00:00Z"); // the clock was wrong
  await bench.users.watchLimits();
  assert.deepEqual([edge.users.length, bench.user.status], [0, "limited"]);
});

test("a window is freed by time that passes, not by a clock that is set ahead, restarts between them", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ quota: { totalBytes: 1000, window: "24h" } });
  bench.meter().reserve("upload", 1500);
  await bench.pass(200);
  assert.equal(bench.status, "limited");
  bench.nowMs += 40 * DAY_MS;
  await bench.users.watchLimits();
  assert.equal(bench.status, "limited");
  await bench.users.checkpoint();
  bench.nowMs -= 40 * DAY_MS;
  bench.restart();
  const [edge] = (await bench.adopt([listener("edge"), listener("side")])) as [FakeInbound];
  await bench.pass(23 * HOUR_MS);
  assert.deepEqual([edge.users.length, bench.user.status], [0, "limited"]);
  await bench.pass(2 * HOUR_MS);
  assert.deepEqual([edge.users.length, bench.user.status], [1, "active"]);
});

test("a clock that is set ahead behind a start of the machine frees no window, though nothing was moved since", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ quota: { totalBytes: 1000, window: "24h" } });
  bench.meter().reserve("upload", 1500);
  await bench.pass(200);
  await bench.users.checkpoint();
  for (const aheadMs of [0, 40 * DAY_MS]) {
    bench.bootId = "second";
    bench.nowMs += aheadMs;
    bench.restart();
    await bench.adopt([listener("edge"), listener("side")]);
    await bench.pass(HOUR_MS);
    assert.equal(bench.user.status, "limited");
    await bench.users.checkpoint();
  }
});

test("a window lets in again what has left it; another period begins anew, more bytes do not", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ quota: { totalBytes: 1000, window: "24h" } });
  bench.meter().reserve("upload", 700);
  await bench.pass(12 * HOUR_MS);
  bench.meter().reserve("upload", 700);
  await bench.pass(200);
  assert.equal(bench.status, "limited");
  await bench.pass(13 * HOUR_MS);
  assert.equal(bench.status, "active");
  await bench.limit({ quota: { totalBytes: 500, window: "1d" } });
  assert.equal(bench.status, "limited", "usage stays with the window's length, however it is written");
  await bench.limit({ quota: { totalBytes: 500, reset: "day" } });
  assert.deepEqual([bench.status, bench.user.quota?.uploadBytes], ["active", 0]);
});

test("where a listener cannot be given a limit, no user is let in at any listener, whichever other one fails", async () => {
  using bench = await LimitedUser.open();
  const bob = bench.admin.users("side")[0] as UserView;
  const expiresAtMs = bench.nowMs + 1000;
  await bench.limit({ expiresAtMs });
  await bench.admin.update(bob.id, { revision: bob.revision, limits: { expiresAtMs } });
  await bench.admin.create({ inbound: "side", name: "carol", revision: bench.revision("side") });
  bench.edge.failures = 1;
  await bench.pass(1000);
  assert.deepEqual([bench.users.admin, bench.edge.users, bench.side.users], [null, [], []]);
});

test("a reset that the listener refuses leaves what was counted, in the file too", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ quota: { totalBytes: 1000, reset: "month" } });
  bench.meter().reserve("upload", 1500);
  await bench.pass(200);
  bench.edge.failures = 1;
  await assert.rejects(() => bench.admin.resetTraffic(bench.id, bench.revision("edge")), /no/);
  const counted = () => [bench.user.uploadBytes, bench.user.quota?.uploadBytes, bench.user.status];
  assert.deepEqual(counted(), [1500, 1500, "limited"]);
  bench.restart();
  await bench.adopt([listener("edge"), listener("side")]);
  assert.deepEqual(counted(), [1500, 1500, "limited"]);
});

test("expiry follows the clock both ways", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ expiresAtMs: bench.nowMs + 1000 });
  await bench.pass(999);
  assert.equal(bench.status, "active");
  await bench.pass(1);
  assert.equal(bench.status, "expired");
  assert.match(refusal(bench.enter()), /expired/);
  bench.nowMs -= 500;
  await bench.users.watchLimits();
  assert.equal(bench.status, "active");
  await bench.limit({ expiresAtMs: 1 });
  assert.equal(bench.status, "expired");
  await bench.limit({ expiresAtMs: 0 });
  assert.equal(bench.status, "active");
});

test("a disabled user stays out whatever the limits say, and a link is for the enabled only", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ expiresAtMs: bench.nowMs - 1 });
  const token = bench.user.subscriptionUrl?.split("/").at(-1) as string;
  assert.deepEqual(bench.admin.subscription(token)?.expiresAtMs, bench.nowMs - 1, "past, and still told");
  await bench.admin.update(bench.id, { revision: bench.revision("edge"), enabled: false });
  assert.deepEqual([bench.status, bench.admin.subscription(token)], ["disabled", null]);
  await bench.limit({ expiresAtMs: 0 });
  assert.equal(bench.status, "disabled");
  await bench.admin.update(bench.id, { revision: bench.revision("edge"), enabled: true });
  assert.equal(bench.status, "active");
});

test("speed: the sessions of a user share one rate, others keep theirs, and a new rate holds at once", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ downloadBitsPerSecond: 8e6 });
  const [one, two] = [bench.meter(), bench.meter()];
  assert.equal(one.reserve("download", 40_000), 0);
  const held = two.reserve("download", 10_000);
  assert.ok(Math.abs(held - 10) < 1, `${held}`);
  assert.equal(two.reserve("upload", 1e6), 0);
  assert.equal(two.admit("download", 1000), false);
  assert.ok(one.pieceBytes <= 40_000);
  await bench.limit({ downloadBitsPerSecond: 80e6 });
  assert.equal(one.reserve("download", 100_000), 0);
  await bench.limit({ downloadBitsPerSecond: 0 });
  assert.deepEqual([one.reserve("download", 1e9), one.pieceBytes], [0, OPEN.pieceBytes]);
});

test("a piece that the user's limit held back is not counted elsewhere either", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ id: "all", downloadBps: 80_000_000 }) }));
  using bench = await LimitedUser.open();
  await bench.limit({ downloadBitsPerSecond: 8e6 });
  for (const bytes of [600_000, 300_000]) {
    const meter = bench.meterOf(bench.id, core.session());
    core.clock.monotonic = bench.monotonicMs += 10_000;
    assert.equal(meter.reserve("download", 40_000), 0);
    assert.ok(meter.reserve("download", bytes) > 250); // the policy itself holds the first one only, for 24 ms
    core.clock.monotonic = bench.monotonicMs += 30;
    meter[Symbol.dispose]();
  }
  const { counters } = core.governance.status().policies[0] ?? assert.fail();
  assert.deepEqual([bench.user.downloadBytes, counters.download], [80_000, 80_000]);
  await core.apply(null);
});

test("a correction takes back what went nowhere, and a held piece as before", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ downloadBitsPerSecond: 8e6 });
  const meter = bench.meter();
  assert.equal(meter.reserve("download", 40_000), 0);
  assert.ok(meter.reserve("download", 50_000) > 0);
  meter.adjust("download", -1000);
  meter[Symbol.dispose]();
  assert.equal(bench.user.downloadBytes, 39_000);
});

test("connections and addresses beyond the limit are refused; a lower limit ends the latest", async () => {
  using bench = await LimitedUser.open();
  await bench.limit({ connections: 2, ips: 1 });
  const leave = bench.enter();
  assert.ok(typeof leave === "function");
  assert.match(refusal(bench.enter("10.0.0.2")), /1 addresses/);
  assert.equal(typeof bench.enter(), "function");
  assert.match(refusal(bench.enter()), /2 connections/);
  leave();
  assert.equal(typeof bench.enter(), "function");
  assert.deepEqual(bench.user.online, [{ ip: "10.0.0.1", connections: 2, lastSeenMs: bench.nowMs }]);
});

test("a session gets the user's name for people and rules, and keeps the id", async () => {
  using bench = await LimitedUser.open();
  const passed = bench.users.enter(bench.session());
  assert.ok(typeof passed !== "string");
  const { user, userId } = passed.session.metadata.inbound;
  assert.deepEqual([user, userId], ["alice", bench.id]);
  await bench.users.adopt(null, [], () => []);
  const alone = bench.session();
  const unmanaged = bench.users.enter(alone);
  assert.ok(typeof unmanaged !== "string");
  assert.equal(unmanaged.session, alone, "who is not managed passes as they are");
});

test("what is no limit is refused by name, with the old ones in force", () => {
  const before = changedLimits(NO_LIMITS, { connections: 3 });
  const wrong: readonly (readonly [LimitsChange, RegExp])[] = [
    [{ quota: { totalBytes: -1 } }, /^quota.total_bytes/],
    [{ quota: { totalBytes: 1, reset: "year" } }, /^quota.reset: expected never, day, week, month/],
    [{ quota: { totalBytes: 1, reset: "day", window: "1d" } }, /^quota: reset and window/],
    ...["59m", "366d", "1", "d", "-1d", "1.5d", "10000000h"].map(
      (window) => [{ quota: { totalBytes: 1, window } }, /^quota.window/] as const,
    ),
    [{ expiresAtMs: -1 }, /^expires_at/],
    [{ expiresAtMs: 8_640_000_000_000_001 }, /^expires_at: .* to 8640000000000000$/],
    [{ uploadBitsPerSecond: 2 ** 53 }, /^upload_bps/],
    [{ downloadBitsPerSecond: -1 }, /^download_bps/],
    [{ connections: -1 }, /^connection_limit/],
    [{ ips: -1 }, /^ip_limit/],
  ];
  for (const [change, pattern] of wrong)
    assert.throws(
      () => changedLimits(before, change),
      (error: unknown) => error instanceof ApiError && error.status === 400 && pattern.test(error.message),
    );
  assert.equal(changedLimits(before, {}), before);
  assert.deepEqual(changedLimits(before, { quota: { totalBytes: 1, window: "2w" } }).quota, {
    totalBytes: 1,
    reset: "window",
    windowSeconds: 14 * 86_400,
  });
  assert.equal(changedLimits(before, { connections: 0 }), NO_LIMITS);
});

test("a user whom the process that has taken over does not admit begins nothing here either", async () => {
  using bench = await LimitedUser.open();
  const asked = [["edge", bench.id]] as const;
  assert.deepEqual(bench.users.admits("edge", bench.id), true);
  bench.users.bar(asked, asked);
  assert.match(refusal(bench.enter()), /may not connect/);
  assert.equal(bench.users.admits("edge", bench.id), false);
  bench.users.bar(asked, []);
  assert.equal(typeof bench.enter(), "function");
});
