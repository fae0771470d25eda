import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { runs } from "../../../test/support/runs.ts";
import { GunCodec } from "./codec.ts";
import { gunPaths } from "./path.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

function opened(...pieces: readonly Buffer[]): Buffer {
  const codec = new GunCodec();
  const got: Buffer[] = [];
  for (const piece of pieces) codec.open(piece, (plain) => got.push(Buffer.from(plain)));
  return Buffer.concat(got);
}

describe("gRPC messages", () => {
  test("published values", () => {
    const codec = new GunCodec();
    assert.deepEqual(codec.seal(Buffer.from("hello")), hex("00 00000007 0a 05 68656c6c6f"));
    assert.deepEqual(codec.seal(Buffer.alloc(300)).subarray(0, 8), hex("00 0000012f 0a ac02"));
  });

  test("what is sealed opens again, in any pieces", () => {
    const property = fc.property(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 300_000 }), { maxLength: 3 }),
      fc.integer({ min: 1, max: 9000 }),
      (writes, cut) => {
        const codec = new GunCodec();
        const wire = Buffer.concat(writes.map((one) => codec.seal(Buffer.from(one))));
        const pieces: Buffer[] = [];
        for (let at = 0; at < wire.length; at += cut) pieces.push(wire.subarray(at, at + cut));
        assert.deepEqual(opened(...pieces), Buffer.concat(writes));
      },
    );
    fc.assert(property, { numRuns: runs(30) });
  });

  test("paths", () => {
    assert.deepEqual(gunPaths(""), { single: "/GunService/Tun", multi: "/GunService/TunMulti" });
    assert.equal(gunPaths("a b/c").single, "/a%20b%2Fc/Tun");
    assert.deepEqual(gunPaths("/x/y/One|Many"), { single: "/x/y/One", multi: "/x/y/Many" });
    assert.equal(gunPaths("/x/One").multi, "/x/One");
  });
});
