import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CommandBytes } from "./command-bytes.ts";
import { MOST_PACKET_BYTES } from "./wire.ts";

test("what is whole is what came, however it was cut", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 9 }), { maxLength: 300 }), (pieces) => {
      const bytes = new CommandBytes();
      for (const piece of pieces) assert.ok(bytes.push(Buffer.from(piece)));
      assert.deepEqual(bytes.whole, Buffer.concat(pieces));
    }),
  );
});

test("more than the longest command is refused, and nothing of it is kept", () => {
  const bytes = new CommandBytes();
  assert.ok(bytes.push(Buffer.alloc(MOST_PACKET_BYTES)));
  assert.ok(!bytes.push(Buffer.alloc(1)));
  assert.equal(bytes.whole.length, 0);
});
