import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ByteQueue } from "./byte-queue.ts";

test("byte queue: fields across pieces, and the rest", () => {
  const queue = new ByteQueue();
  queue.push(Buffer.from("ab"));
  queue.push(Buffer.from(""));
  queue.push(Buffer.from("cdef"));
  assert.equal(queue.take(7), null);
  assert.equal(queue.peek(3)?.toString(), "abc");
  assert.equal(queue.take(1)?.toString(), "a");
  assert.equal(queue.take(3)?.toString(), "bcd");
  assert.equal(queue.length, 2);
  assert.equal(queue.takeSome(9).toString(), "ef");
  assert.equal(queue.takeSome(9).length, 0);
  assert.equal(queue.take(0)?.length, 0);
});

test("byte queue: any order of pushes and takes gives the bytes in order", () => {
  const step = fc.record({ push: fc.uint8Array({ maxLength: 9 }), take: fc.nat(12), how: fc.nat(3) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new ByteQueue();
      let model = Buffer.alloc(0);
      for (const { push, take, how } of steps) {
        queue.push(Buffer.from(push));
        if (take > 6) queue.joinBeyond(how);
        model = Buffer.concat([model, push]);
        const got = how === 0 ? queue.takeSome(take) : how === 1 ? queue.takeAll() : queue.take(take);
        if (got === null) assert.ok(take > model.length);
        else assert.deepEqual(got, model.subarray(0, got.length));
        model = model.subarray(got?.length ?? 0);
        assert.equal(queue.length, model.length);
      }
    }),
  );
});

test("byte queue: thousands of single bytes", () => {
  const queue = new ByteQueue();
  for (let at = 0; at < 5000; at++) queue.push(Buffer.from([at & 0xff]));
  for (let at = 0; at < 3000; at++) assert.equal(queue.take(1)?.[0], at & 0xff);
  assert.equal(queue.takeAll().length, 2000);
});
