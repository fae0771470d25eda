import assert from "node:assert/strict";
import { test } from "node:test";
import { markLane } from "./lanes.ts";

test("the first byte of an id tells its lane, whatever it was", () => {
  for (const count of [1, 2, 3, 5, 8, 128])
    for (let index = 0; index < count; index++)
      for (let first = 0; first < 256; first++) {
        const id = Uint8Array.of(first, 7);
        markLane(id, { index, count });
        assert.deepEqual([(id[0] ?? -1) % count, id[1]], [index, 7], `${first} of ${index} / ${count}`);
      }
});
