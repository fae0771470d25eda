import assert from "node:assert/strict";
import { test } from "node:test";
import { Slot, TokenBucket } from "./token-bucket.ts";

const SECONDS = 10;

interface Flow {
  readonly slots: readonly Slot[];
  /** What a read gives at most. */
  readonly readBytes: number;
  moved: number;
}

const flow = (buckets: readonly TokenBucket[], readBytes = 64 * 1024): Flow => ({
  slots: buckets.map((bucket) => new Slot(bucket, null)),
  readBytes,
  moved: 0,
});

/** The fullest 100 ms of what was handed on. */
class Windows {
  readonly #bins = new Float64Array(SECONDS * 1000 + 1000);
  add(atMs: number, bytes: number): void {
    const bin = Math.trunc(atMs);
    this.#bins[bin] = (this.#bins[bin] as number) + bytes;
  }
  get most(): number {
    let most = 0;
    let sum = 0;
    for (let at = 0; at < this.#bins.length; at++) {
      sum += (this.#bins[at] as number) - (this.#bins[at - 100] ?? 0);
      most = Math.max(most, sum);
    }
    return most;
  }
}

/** Streams that always have something to say: each takes a piece, waits as told (a timer is up to 4 ms late), goes on. */
function simulate(flows: readonly Flow[], seconds = SECONDS, windows = new Windows()): void {
  const readyAt = flows.map(() => 0);
  let jitter = 1;
  for (;;) {
    const next = readyAt.indexOf(Math.min(...readyAt));
    const nowMs = readyAt[next] as number;
    if (nowMs >= seconds * 1000) return;
    const one = flows[next] as Flow;
    const bytes = Math.min(one.readBytes, ...one.slots.map(({ bucket }) => bucket.pieceBytes));
    const holdMs = Math.max(...one.slots.map((slot) => slot.bucket.take(slot, bytes, nowMs)));
    jitter = (jitter * 48_271) % 0x7fffffff;
    const late = holdMs === 0 ? 0.01 : (jitter % 4000) / 1000;
    readyAt[next] = nowMs + holdMs + late;
    if (nowMs + holdMs < seconds * 1000) {
      one.moved += bytes;
      windows.add(readyAt[next], bytes);
    }
  }
}

const movedBy = (flows: readonly Flow[]): number => flows.reduce((sum, one) => sum + one.moved, 0);

/** Jain's index: 1 where all shares are equal. */
function jain(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  return sum ** 2 / (shares.length * shares.reduce((a, b) => a + b * b, 0));
}

for (const mbit of [1, 10, 100, 1000])
  for (const count of [1, 16, 64, 100])
    test(`${mbit} Mbit/s over ${count} flows: within 3 %, no 100 ms above 1.5 times that, Jain at least 0.95`, () => {
      const bucket = new TokenBucket(mbit * 1e6, 0);
      // every other flow reads as TLS does, in records of 16 KiB
      const flows = Array.from({ length: count }, (_, at) => flow([bucket], at % 2 === 0 ? 65_536 : 16_384));
      const windows = new Windows();
      simulate(flows, SECONDS, windows);
      const moved = flows.reduce((sum, one) => sum + one.moved, 0);
      const wanted = (mbit * 1e6 * SECONDS) / 8;
      assert.ok(Math.abs(moved / wanted - 1) <= 0.03, `${(moved / wanted - 1) * 100} %`);
      assert.ok(
        windows.most <= 1.5 * (wanted / SECONDS / 10),
        `${windows.most / (wanted / SECONDS / 10)} times`,
      );
      assert.ok(jain(flows.map((one) => one.moved)) >= 0.95, `Jain ${jain(flows.map((one) => one.moved))}`);
    });

for (const each of [1, 8])
  test(`§11.2 sessions share 8 Mbit/s; those of a device of 3 Mbit/s get 3 and the others all the rest, ${each} each`, () => {
    const common = new TokenBucket(8e6, 0);
    const device = new TokenBucket(3e6, 0);
    const free = Array.from({ length: each }, () => flow([common]));
    const bound = Array.from({ length: each }, () => flow([common, device]));
    simulate([...free, ...bound]);
    assert.ok(Math.abs(movedBy(bound) / (3e6 * (SECONDS / 8)) - 1) < 0.03, `bound ${movedBy(bound)}`);
    assert.ok(Math.abs(movedBy(free) / (5e6 * (SECONDS / 8)) - 1) < 0.03, `free ${movedBy(free)}`);
  });

for (const each of [1, 8, 64])
  test(`100, 20 and 10 Mbit/s inside one another, ${each} flows each: every one is used up and held`, () => {
    const [all, device, rule] = [100e6, 20e6, 10e6].map((rate) => new TokenBucket(rate, 0)) as [
      TokenBucket,
      TokenBucket,
      TokenBucket,
    ];
    const inner = Array.from({ length: each }, () => flow([all, device, rule]));
    const middle = Array.from({ length: each }, () => flow([all, device]));
    const outer = Array.from({ length: each }, () => flow([all]));
    const windows = new Windows();
    simulate([...inner, ...middle, ...outer], SECONDS, windows);
    const rates = [inner, [...inner, ...middle], [...inner, ...middle, ...outer]].map(
      (flows) => (movedBy(flows) * 8) / SECONDS / 1e6,
    );
    for (const [at, wanted] of [10, 20, 100].entries())
      assert.ok(
        Math.abs((rates[at] as number) / wanted - 1) <= 0.03,
        `${rates.map((rate) => rate.toFixed(2))}`,
      );
    assert.ok(windows.most <= (1.5 * 100e6) / 8 / 10, `${windows.most}`);
  });

test("flows of small reads, late flows and flows that rest are not worse off than those of large reads", () => {
  const bucket = new TokenBucket(20e6, 0);
  const flows = [4096, 16_384, 65_536, 65_536].map((readBytes) => flow([bucket], readBytes));
  simulate(flows);
  const index = jain(flows.map(({ moved }) => moved));
  assert.ok(index >= 0.95, `${flows.map(({ moved }) => moved)}: ${index}`);
});

test("§11.3 8 kbit/s passes a datagram of 1,500 bytes; what is refused costs nothing", () => {
  const slow = new TokenBucket(8000, 0);
  const slot = new Slot(slow, null);
  assert.ok(slow.grants(slot, 1500, 0));
  slow.spend(slot, 1500, 0);
  assert.ok(!slow.grants(slot, 100, 0));
  assert.ok(!slow.grants(slot, 100, 99));
  assert.ok(slow.grants(slot, 100, 101), "asking in vain took nothing");
});

test("a full bucket lets one larger datagram pass and then owes for it", () => {
  const bucket = new TokenBucket(80_000, 0); // 10 bytes a ms
  const slot = new Slot(bucket, null);
  assert.ok(bucket.grants(slot, 9000, 0));
  bucket.spend(slot, 9000, 0);
  assert.ok(!bucket.grants(slot, 1, 700));
  assert.ok(bucket.grants(slot, 1, 760));
});

test("datagrams beside a stream that is always waiting get their share", () => {
  const bucket = new TokenBucket(8e6, 0);
  const stream = flow([bucket]);
  const slot = new Slot(bucket, null);
  let passed = 0;
  let streamReadyMs = 0;
  for (let nowMs = 0; nowMs < 10_000; nowMs++) {
    if (streamReadyMs <= nowMs) {
      const bytes = bucket.pieceBytes;
      streamReadyMs = nowMs + bucket.take(stream.slots[0] as Slot, bytes, nowMs);
      stream.moved += bytes;
    }
    if (!bucket.grants(slot, 1000, nowMs)) continue;
    bucket.spend(slot, 1000, nowMs);
    passed += 1000;
  }
  assert.ok(Math.abs((passed + stream.moved) / 10e6 - 1) < 0.03, `${passed + stream.moved}`);
  assert.ok(jain([passed, stream.moved]) >= 0.95, `${passed} and ${stream.moved}`);
});
