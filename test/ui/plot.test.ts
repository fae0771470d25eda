import assert from "node:assert/strict";
import { test } from "node:test";
import { axisOf } from "#ui/parts/plot-data.ts";

test("the plot of the last five minutes has an axis of five minutes, however little there is to show", () => {
  assert.deepEqual(axisOf(300, 990, 1000, 0), [700, 1000]);
  assert.deepEqual(axisOf(300, null, null, 5_000_000), [4700, 5000]);
  assert.deepEqual(axisOf(undefined, 990, 1000, 0), [940, 1000], "others show a minute at least");
  assert.deepEqual(axisOf([10, 20], 990, 1000, 0), [10, 20]);
});
