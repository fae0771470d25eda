import assert from "node:assert/strict";
import { test } from "node:test";
import { ASK_ONLY, Lease, type LeaseEnv } from "./lease.ts";

const MIB = 1_048_576;
const TOTAL = 100 * MIB;

interface Rig {
  lease: Lease;
  nowMs: number;
  isUp: boolean;
  lows: number;
  answer(wanted: number, grantedBytes: number, usedBytes?: number): void;
}

function rig(usedBytes = 0, onPartition: LeaseEnv["onPartition"] = "allow", lentBytes = 0): Rig {
  const user = {
    id: "alice",
    generation: 1,
    quota: { totalBytes: TOTAL, reset: "never", windowSeconds: 0 },
  } as const;
  const made: Omit<Rig, "lease"> = {
    nowMs: 0,
    isUp: true,
    lows: 0,
    answer(wanted, grantedBytes, used = 0) {
      lease.cut();
      lease.take(wanted, { grantedBytes, uploadBytes: used, downloadBytes: 0, resetsAtMs: null });
      lease.isAsked = false;
    },
  };
  const lease = new Lease(
    user,
    { usedBytes, lentBytes },
    {
      monotonicMs: () => made.nowMs,
      isUp: () => made.isUp,
      onPartition,
      onLow: () => made.lows++,
    },
  );
  return Object.assign(made, { lease });
}

test("a user who moves nothing asks for nothing; who moves asks at half of what there is", () => {
  const a = rig();
  assert.equal(a.lease.wanted(), null);
  a.lease.spend("upload", 100);
  assert.deepEqual([a.lows, a.lease.wanted(), a.lease.isWaiting], [0, null, false]);
  a.lease.spend("download", MIB / 2);
  assert.equal(a.lows, 1);
  assert.ok((a.lease.wanted() ?? 0) > MIB);
  a.answer(5 * MIB, 4 * MIB, MIB);
  assert.deepEqual([a.lease.lentBytes, a.lease.wanted()], [4 * MIB, null]);
  a.lease.spend("upload", 2 * MIB);
  assert.equal(a.lows, 2);
  a.lease.spend("upload", 2 * MIB);
  assert.deepEqual([a.lease.isWaiting, a.lease.isOver], [true, false], "more comes, or nothing does");
  assert.deepEqual(a.lease.used(), { uploadBytes: 5 * MIB, downloadBytes: 0, resetsAtMs: null });
});

test("what is spent while the answer is under way is taken off it", () => {
  const a = rig();
  a.lease.spend("upload", MIB);
  a.lease.cut();
  a.lease.spend("upload", 3 * MIB);
  a.lease.take(1, { grantedBytes: 4 * MIB, uploadBytes: MIB, downloadBytes: 0, resetsAtMs: null });
  assert.equal(a.lease.isWaiting, false);
  a.lease.spend("upload", MIB);
  assert.equal(a.lease.isWaiting, true);
});

test("an idle lease goes back, and its user goes on without one at first", () => {
  const a = rig();
  a.lease.spend("upload", MIB);
  a.answer(MIB, 4 * MIB);
  a.nowMs = 61_000;
  assert.equal(a.lease.wanted(), 0);
  a.answer(0, 0, MIB);
  assert.deepEqual([a.lease.lentBytes, a.lease.isOver, a.lease.wanted()], [0, false, null]);
  a.nowMs += 3_600_000;
  assert.deepEqual([a.lease.isWaiting, a.lease.isOver], [false, false]);
  a.lease.spend("upload", MIB);
  assert.ok((a.lease.wanted() ?? 0) > 0);
  assert.equal(rig(0, "allow", MIB).lease.wanted(), 0, "so does that of a lease before it");
});

test("without anything left a user is over, and asked for again", () => {
  const a = rig();
  a.lease.spend("upload", MIB);
  a.answer(MIB, 0, TOTAL);
  assert.deepEqual([a.lease.isOver, a.lease.isWaiting, a.lease.wanted()], [true, false, null]);
  a.nowMs = 10_000;
  assert.equal(a.lease.wanted(), ASK_ONLY);
  a.answer(ASK_ONLY, 40 * MIB, 60 * MIB);
  assert.deepEqual([a.lease.isOver, a.lease.lentBytes], [false, 0], "it was only asked");
  assert.equal(rig(TOTAL).lease.isOver, true, "by what is known before the first answer");
});

test("without the database a lease is spent, for ten minutes; then it is as the operator says", () => {
  for (const [onPartition, isOver, isOverLater] of [
    ["allow", false, false],
    ["overage", false, true],
    ["stop", true, true],
  ] as const) {
    const a = rig(0, onPartition);
    a.lease.spend("upload", MIB);
    a.answer(MIB, 4 * MIB, 90 * MIB);
    a.isUp = false;
    a.lease.spend("upload", 3 * MIB);
    assert.equal(a.lease.isOver, false, onPartition);
    a.nowMs = 600_001;
    assert.equal(a.lease.isOver, isOver, `${onPartition}: too old`);
    a.lease.spend("upload", 7 * MIB);
    assert.equal(a.lease.isOver, isOverLater, `${onPartition}: beyond what was left of the quota`);
    a.isUp = true;
    assert.deepEqual([a.lease.isOver, a.lease.isWaiting], [false, true]);
    a.answer(1, 0, TOTAL);
    a.isUp = false;
    assert.equal(a.lease.isOver, true, `${onPartition}: a quota that is used up stays so`);
  }
});

test("a quota that was used up on other nodes stops at once, and the database is asked again later", () => {
  const learned = rig();
  learned.lease.learn(TOTAL - 1);
  assert.equal(learned.lease.isOver, false);
  learned.lease.learn(TOTAL);
  assert.deepEqual([learned.lease.isOver, learned.lease.wanted()], [true, null]);
  learned.nowMs = 10_000;
  assert.equal(learned.lease.wanted(), ASK_ONLY);
  learned.answer(ASK_ONLY, MIB, TOTAL - MIB);
  assert.equal(learned.lease.isOver, false);
});
