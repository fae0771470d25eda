import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
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

test("a message that comes byte by byte takes little more memory than its bytes", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const readers = Array.from({ length: 20 }, () => new FrameReader(() => assert.fail("it is not whole")));
  const used = (): number => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = used();
  for (const reader of readers) {
    reader.push(Buffer.from([0xff, 0xff]));
    for (let at = 0; at < 20_000; at++) reader.push(Buffer.alloc(1));
  }
  const grown = used() - before;
  assert.ok(grown < 8 << 20, `${grown} bytes for 20 messages of which 20,000 came`);
  readers.forEach((reader) => reader.push(Buffer.alloc(1)));
});
