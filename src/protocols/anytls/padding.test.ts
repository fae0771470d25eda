import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ConfigError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { shapeWrite } from "#protocols/shared/padded-write.ts";
import { DEFAULT_SCHEME, parseScheme, preamblePadding } from "./padding.ts";
import * as wire from "./wire.ts";

const smallest = (from: number) => from;
const sizes = (index: number, payloadBytes: number) =>
  shapeWrite(DEFAULT_SCHEME, index, Buffer.alloc(payloadBytes, 1), smallest).map((piece) => piece.length);

test("the default scheme, write by write, with the smallest sizes", () => {
  assert.equal(preamblePadding(DEFAULT_SCHEME), 30);
  assert.deepEqual(sizes(1, 76 + 7 + 22), [100, 5]); // more than the size: cut there, the rest unshaped
  assert.deepEqual(sizes(1, 80), [100]); // 80 + header 7 + 13 zeros
  assert.deepEqual(sizes(1, 95), [95]); // no room for a header: alone
  assert.deepEqual(sizes(1, 93), [93]);
  assert.deepEqual(sizes(1, 92), [100]);
  assert.deepEqual(sizes(2, 100), [400]); // then a check, and nothing is left
  assert.deepEqual(sizes(2, 1000), [400, 500, 500]);
  assert.deepEqual(sizes(2, 5000), [400, 500, 500, 500, 500, 2600]);
  assert.deepEqual(sizes(3, 7), [7, 507]); // a SYN alone, then pure waste of 7 + 500
  assert.deepEqual(sizes(3, 100), [9, 500]);
  assert.deepEqual(sizes(8, 7), [7]); // behind stop
});

test("what is added is waste, and nothing is lost", () => {
  fc.assert(
    fc.property(fc.nat(9), fc.uint8Array({ maxLength: 6000 }), (index, bytes) => {
      const frame = wire.encodeData(1, Buffer.from(bytes));
      const queue = new ByteQueue();
      queue.push(Buffer.concat([...shapeWrite(DEFAULT_SCHEME, index, frame)]));
      assert.deepEqual(wire.takeFrame(queue)?.data, Buffer.from(bytes));
      for (let rest = wire.takeFrame(queue); rest !== null; rest = wire.takeFrame(queue))
        assert.equal(rest.command, wire.WASTE);
      assert.equal(queue.length, 0);
    }),
  );
});

test("schemes that cannot be read are refused, odd ranges are not", () => {
  for (const text of [
    "",
    "0=30-30",
    "stop=x",
    "stop=3\n1=5",
    "stop=3\n1=1-70000",
    "stop=3\nfoo=1-2",
    "stop=-1",
  ])
    assert.throws(() => parseScheme(Buffer.from(text)), ConfigError, text);
  const odd = parseScheme(Buffer.from("stop=2\n1=50-40,0-0,c"));
  assert.deepEqual(
    shapeWrite(odd, 1, Buffer.alloc(45), smallest).map((piece) => piece.length),
    [40, 5],
  );
});
