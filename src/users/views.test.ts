import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { codePoint } from "../../test/support/code-points.ts";
import { runs } from "../../test/support/runs.ts";
import { compareBytes } from "./views.ts";

test("names are in the order of their UTF-8 bytes, whatever is in them", () => {
  const text = fc.string({
    unit: fc.oneof(fc.constantFrom("a", "\u{e000}", "\u{ffff}", "😀"), fc.string({ unit: codePoint })),
  });
  fc.assert(
    fc.property(text, text, (a, b) => {
      assert.equal(Math.sign(compareBytes(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
    { numRuns: runs(5000) },
  );
});
