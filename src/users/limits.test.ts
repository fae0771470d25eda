import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { ApiError } from "#core/errors.ts";
import type { Meter } from "#core/meter.ts";
import type { Session } from "#core/session.ts";
import type { LimitsChange, UserDetailView, UserView } from "#core/users.ts";
import { governed, policy, settings } from "../../test/support/governed-ledger.ts";
import { Bench, type FakeInbound, listener, metadataOf } from "../../test/support/users-bench.ts";
import { changedLimits, NO_LIMITS } from "./limits.ts";

const OPEN: Meter = {
  pieceBytes: 1 << 20,
  reserve: () => 0,
  trySend: () => 0,
  adjust() {},
  admit: () => true,
  [Symbol.dispose]() {},
};
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** `edge` with one user, and `side` with another who must never notice. */
class House extends Bench {
  id = "";

  static async open(): Promise<House> {
    const house = new House();
    await house.adopt([listener("edge", "alice"), listener("side", "bob")]);
    house.id = house.admin.users("edge")[0]?.id as string;
    return house;
  }

  get edge(): FakeInbound {
    return this.inbounds[0] as FakeInbound;
  }
  get side(): FakeInbound {
    return this.inbounds[1] as FakeInbound;
  }
  limit(limits: LimitsChange): Promise<UserDetailView> {
    return this.admin.update(this.id, { revision: this.revision("edge"), limits });
  }
  get user(): UserDetailView {
    return this.admin.user(this.id) as UserDetailView;
  }
  /** Later; what looks after the limits has had its turn. */
  async pass(ms: number): Promise<void> {
    this.nowMs += ms;
    this.monotonicMs += Math.max(0, ms);
    await this.users.watchLimits();
  }
  /** What the listener and the view say: the two must agree. */
  get status(): string {
    const { status } = this.user;
    assert.equal(this.edge.users.length, status === "active" ? 1 : 0);
    assert.equal(this.side.calls, 1, "the other listener hears nothing");
    return status;
  }
  meter(): Meter {
    return this.meterOf(this.id, OPEN);
  }
  session(from = "10.0.0.1"): Session & { readonly stream: PassThrough } {
    const stream = new PassThrough();
    stream.on("error", () => {});
    const metadata = { ...metadataOf("edge", this.id), source: { ip: from, port: 1 } } as never;
    return { network: "tcp", metadata, stream, reply() {} };
  }
  enter(from?: string): (() => void) | string {
    const passed = this.users.enter(this.session(from));
    return typeof passed === "string" ? passed : passed.leave;
  }
}

const refusal = (entry: (() => void) | string): string =>
  typeof entry === "string" ? entry : assert.fail("it was let in");

test("a quota: the piece that uses it up passes, what follows waits for the cut, datagrams are dropped", async () => {
  using house = await House.open();
  await house.limit({ quota: { totalBytes: 1000 } });
  const meter = house.meter();
  assert.equal(meter.reserve("upload", 600), 0);
  assert.equal(meter.reserve("download", 600), 0);
  assert.ok(meter.reserve("upload", 10) >= 1000);
  assert.equal(meter.admit("download", 10), false);
  meter[Symbol.dispose](); // as the cut does: what was held never went out
  await house.pass(200);
  assert.equal(house.status, "limited");
  const { quota, uploadBytes, downloadBytes } = house.user;
  assert.deepEqual([uploadBytes, downloadBytes], [600, 600]);
  assert.deepEqual(quota, { uploadBytes: 600, downloadBytes: 600, resetsAtMs: null });
  assert.match(refusal(house.enter()), /limited/);
  await house.limit({ quota: { totalBytes: 2000 } });
  assert.equal(house.status, "active");
  await house.limit({ quota: { totalBytes: 1100 } });
  assert.equal(house.status, "limited", "at once, not at the next look");
  await house.admin.resetTraffic(house.id, house.revision("edge"));
  assert.equal(house.status, "active");
  await house.limit({ quota: { totalBytes: 0 } });
  assert.deepEqual([house.status, house.user.quota, house.user.limits], ["active", null, NO_LIMITS]);
});

test("a cycle ends the quota's usage, the counters go on, and both survive a restart", async () => {
  using house = await House.open();
  house.nowMs = Date.parse("2026-11-29T12:00:00Z");
  await house.limit({ quota: { totalBytes: 1000, reset: "month" } });
  house.meter().reserve("upload", 1500);
  await house.pass(200);
  assert.equal(house.status, "limited");
  await house.pass(DAY_MS);
  house.restart();
  const [edge] = (await house.adopt([listener("edge"), listener("side")])) as [FakeInbound];
  assert.deepEqual([edge.users.length, house.user.status], [0, "limited"], "no gap at the start");
  assert.equal(house.user.quota?.resetsAtMs, Date.parse("2026-12-01T00:00:00Z"));
  house.nowMs = Date.parse("2026-12-01T00:00:00Z") - 1;
  await house.users.watchLimits();
  assert.equal(edge.users.length, 0);
  house.nowMs++;
  await house.users.watchLimits();
  assert.deepEqual([edge.users.length, house.user.quota?.uploadBytes, house.user.uploadBytes], [1, 0, 1500]);
  house.nowMs = Date.parse("2026-11-30T12:00:00Z"); // the clock was wrong
  await house.users.watchLimits();
  assert.deepEqual([edge.users.length, house.user.status], [0, "limited"]);
});

test("a window is freed by time that passes, not by a clock that is set ahead, restarts between them", async () => {
  using house = await House.open();
  await house.limit({ quota: { totalBytes: 1000, window: "24h" } });
  house.meter().reserve("upload", 1500);
  await house.pass(200);
  assert.equal(house.status, "limited");
  house.nowMs += 40 * DAY_MS;
  await house.users.watchLimits();
  assert.equal(house.status, "limited");
  await house.users.checkpoint();
  house.nowMs -= 40 * DAY_MS;
  house.restart();
  const [edge] = (await house.adopt([listener("edge"), listener("side")])) as [FakeInbound];
  await house.pass(23 * HOUR_MS);
  assert.deepEqual([edge.users.length, house.user.status], [0, "limited"]);
  await house.pass(2 * HOUR_MS);
  assert.deepEqual([edge.users.length, house.user.status], [1, "active"]);
});

test("a window lets in again what has left it; another period begins anew, more bytes do not", async () => {
  using house = await House.open();
  await house.limit({ quota: { totalBytes: 1000, window: "24h" } });
  house.meter().reserve("upload", 700);
  await house.pass(12 * HOUR_MS);
  house.meter().reserve("upload", 700);
  await house.pass(200);
  assert.equal(house.status, "limited");
  await house.pass(13 * HOUR_MS);
  assert.equal(house.status, "active");
  await house.limit({ quota: { totalBytes: 500, window: "1d" } });
  assert.equal(house.status, "limited", "usage stays with the window's length, however it is written");
  await house.limit({ quota: { totalBytes: 500, reset: "day" } });
  assert.deepEqual([house.status, house.user.quota?.uploadBytes], ["active", 0]);
});

test("where a listener cannot be given a limit, no user is let in at any listener, whichever other one fails", async () => {
  using house = await House.open();
  const bob = house.admin.users("side")[0] as UserView;
  const expiresAtMs = house.nowMs + 1000;
  await house.limit({ expiresAtMs });
  await house.admin.update(bob.id, { revision: bob.revision, limits: { expiresAtMs } });
  await house.admin.create({ inbound: "side", name: "carol", revision: house.revision("side") });
  house.edge.failures = 1;
  await house.pass(1000);
  assert.deepEqual([house.users.admin, house.edge.users, house.side.users], [null, [], []]);
});

test("a reset that the listener refuses leaves what was counted, in the file too", async () => {
  using house = await House.open();
  await house.limit({ quota: { totalBytes: 1000, reset: "month" } });
  house.meter().reserve("upload", 1500);
  await house.pass(200);
  house.edge.failures = 1;
  await assert.rejects(() => house.admin.resetTraffic(house.id, house.revision("edge")), /no/);
  const counted = () => [house.user.uploadBytes, house.user.quota?.uploadBytes, house.user.status];
  assert.deepEqual(counted(), [1500, 1500, "limited"]);
  house.restart();
  await house.adopt([listener("edge"), listener("side")]);
  assert.deepEqual(counted(), [1500, 1500, "limited"]);
});

test("expiry follows the clock both ways", async () => {
  using house = await House.open();
  await house.limit({ expiresAtMs: house.nowMs + 1000 });
  await house.pass(999);
  assert.equal(house.status, "active");
  await house.pass(1);
  assert.equal(house.status, "expired");
  assert.match(refusal(house.enter()), /expired/);
  house.nowMs -= 500;
  await house.users.watchLimits();
  assert.equal(house.status, "active");
  await house.limit({ expiresAtMs: 1 });
  assert.equal(house.status, "expired");
  await house.limit({ expiresAtMs: 0 });
  assert.equal(house.status, "active");
});

test("a disabled user stays out whatever the limits say, and a link is for the enabled only", async () => {
  using house = await House.open();
  await house.limit({ expiresAtMs: house.nowMs - 1 });
  const token = house.user.subscriptionUrl?.split("/").at(-1) as string;
  assert.deepEqual(house.admin.subscription(token)?.expiresAtMs, house.nowMs - 1, "past, and still told");
  await house.admin.update(house.id, { revision: house.revision("edge"), enabled: false });
  assert.deepEqual([house.status, house.admin.subscription(token)], ["disabled", null]);
  await house.limit({ expiresAtMs: 0 });
  assert.equal(house.status, "disabled");
  await house.admin.update(house.id, { revision: house.revision("edge"), enabled: true });
  assert.equal(house.status, "active");
});

test("speed: the sessions of a user share one rate, others keep theirs, and a new rate holds at once", async () => {
  using house = await House.open();
  await house.limit({ downloadBitsPerSecond: 8e6 });
  const [one, two] = [house.meter(), house.meter()];
  assert.equal(one.reserve("download", 40_000), 0);
  const held = two.reserve("download", 10_000);
  assert.ok(Math.abs(held - 10) < 1, `${held}`);
  assert.equal(two.reserve("upload", 1e6), 0);
  assert.equal(two.admit("download", 1000), false);
  assert.ok(one.pieceBytes <= 40_000);
  await house.limit({ downloadBitsPerSecond: 80e6 });
  assert.equal(one.reserve("download", 100_000), 0);
  await house.limit({ downloadBitsPerSecond: 0 });
  assert.deepEqual([one.reserve("download", 1e9), one.pieceBytes], [0, OPEN.pieceBytes]);
});

test("a piece that the user's limit held back is not counted elsewhere either", async () => {
  const core = governed();
  await core.apply(settings({ global: policy({ id: "all", downloadBps: 80_000_000 }) }));
  using house = await House.open();
  await house.limit({ downloadBitsPerSecond: 8e6 });
  for (const bytes of [600_000, 300_000]) {
    const meter = house.meterOf(house.id, core.session());
    core.clock.monotonic = house.monotonicMs += 10_000;
    assert.equal(meter.reserve("download", 40_000), 0);
    assert.ok(meter.reserve("download", bytes) > 250); // the policy itself holds the first one only, for 24 ms
    core.clock.monotonic = house.monotonicMs += 30;
    meter[Symbol.dispose]();
  }
  const { counters } = core.governance.status().policies[0] ?? assert.fail();
  assert.deepEqual([house.user.downloadBytes, counters.download], [80_000, 80_000]);
  await core.apply(null);
});

test("a correction takes back what went nowhere, and a held piece as before", async () => {
  using house = await House.open();
  await house.limit({ downloadBitsPerSecond: 8e6 });
  const meter = house.meter();
  assert.equal(meter.reserve("download", 40_000), 0);
  assert.ok(meter.reserve("download", 50_000) > 0);
  meter.adjust("download", -1000);
  meter[Symbol.dispose]();
  assert.equal(house.user.downloadBytes, 39_000);
});

test("connections and addresses beyond the limit are refused; a lower limit ends the latest", async () => {
  using house = await House.open();
  await house.limit({ connections: 2, ips: 1 });
  const leave = house.enter();
  assert.ok(typeof leave === "function");
  assert.match(refusal(house.enter("10.0.0.2")), /1 addresses/);
  assert.equal(typeof house.enter(), "function");
  assert.match(refusal(house.enter()), /2 connections/);
  leave();
  assert.equal(typeof house.enter(), "function");
  assert.deepEqual(house.user.online, [{ ip: "10.0.0.1", connections: 2, lastSeenMs: house.nowMs }]);
});

test("a session gets the user's name for people and rules, and keeps the id", async () => {
  using house = await House.open();
  const passed = house.users.enter(house.session());
  assert.ok(typeof passed !== "string");
  const { user, userId } = passed.session.metadata.inbound;
  assert.deepEqual([user, userId], ["alice", house.id]);
  await house.users.adopt(null, [], () => []);
  const alone = house.session();
  const unmanaged = house.users.enter(alone);
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
