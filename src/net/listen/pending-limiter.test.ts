import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PendingLimiter, type PendingEntry } from "./pending-limiter.ts";

test("at a bound the oldest gives way, of a source that has more than its share its own", () => {
  const crowd = new PendingLimiter({ count: 8, bytes: 1_000 });
  const gone: string[] = [];
  const enter = (source: string, name: string, bytes = 1): PendingEntry =>
    crowd.enter(source, bytes, () => void gone.push(name));
  for (let at = 0; at < 4; at++) enter("quiet", `q${at}`);
  for (let at = 0; at < 10; at++) enter("loud", `l${at}`);
  assert.deepEqual(gone, ["l0", "l1", "l2", "l3", "l4", "l5"]); // the quiet one has lost nothing
  enter("third", "t0");
  assert.equal(gone.at(-1), "q0"); // all have their share, and all together are too many
  assert.equal(crowd.size, 8);
});

test("bytes count as well as connections, and the one that grows is not the one that goes", () => {
  const crowd = new PendingLimiter({ count: 100, bytes: 100 });
  const gone: number[] = [];
  const members = Array.from({ length: 5 }, (_, at) => crowd.enter(at, 10, () => void gone.push(at)));
  crowd.grow(members[0] as PendingEntry, 80);
  assert.deepEqual(gone, [1, 2, 3]); // it is the oldest, and the only one of its source, which has more than its share
  assert.equal(crowd.bytes, 100);
  for (const one of members) crowd.leave(one);
  for (const one of members) crowd.leave(one);
  assert.deepEqual([crowd.size, crowd.bytes], [0, 0]);
  assert.deepEqual([crowd.takeSettled(), crowd.takeSettled()], [true, false]);
});

test("connections come, grow and go: sums are right, and no bound is passed", () => {
  const step = fc.tuple(fc.constantFrom("enter", "grow", "leave"), fc.nat(3), fc.nat(40), fc.nat(50));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const crowd = new PendingLimiter({ count: 12, bytes: 200 });
      const present = new Set<PendingEntry>();
      for (const [what, source, bytes, which] of steps) {
        const one = [...present][which % Math.max(1, present.size)];
        if (what === "enter") {
          const made: PendingEntry = crowd.enter(source, bytes, () => assert.ok(present.delete(made)));
          present.add(made);
        } else if (one !== undefined && what === "grow") crowd.grow(one, bytes);
        else if (one !== undefined) {
          crowd.leave(one);
          present.delete(one);
        }
        assert.equal(crowd.size, present.size);
        assert.equal(
          crowd.bytes,
          [...present].reduce((sum, each) => sum + each.bytes, 0),
        );
        assert.ok(crowd.size <= 12 && (crowd.bytes <= 200 || crowd.size === 1));
      }
    }),
  );
});
