import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FrameReader, frameOf } from "./frames.ts";

test("messages come out whole, however the bytes are cut", () => {
  const message = fc.uint8Array({ maxLength: 80 });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 8 }), fc.array(fc.nat(50)), (messages, cuts) => {
      const stream = Buffer.concat(messages.map(frameOf));
      const got: Uint8Array[] = [];
      const reader = new FrameReader((frame) => got.push(Uint8Array.from(frame)));
      let at = 0;
      for (const cut of [...cuts, stream.length]) {
        reader.push(stream.subarray(at, at + cut));
        at = Math.min(stream.length, at + cut);
      }
      assert.deepEqual(got, messages);
    }),
  );
});
