import assert from "node:assert/strict";
import { test } from "node:test";
import { ageOf } from "./versions.ts";

test("versions go by their numbers, then by the day of a build", () => {
  for (const [other, ours, age] of [
    ["1.2.3", "1.2.3", "same"],
    ["1.10.0", "1.9.9", "newer"],
    ["1.2.3-20260102-aaaa", "1.2.3-20260101-ffff", "newer"],
    ["1.2.3-20260101-aaaa", "1.2.3-20260102-ffff", "older"],
    ["1.2.3", "1.2.3-20260102-ffff", "newer"],
    ["1.2.3-20260101-aaaa", "1.2.3-20260101-bbbb", "unknown"],
    ["1.2.4-20260101-aaaa", "1.2.3-20261231-bbbb", "newer"],
    ["v1.2.3", "1.2.2", "newer"],
    ["1.2", "1.1.0", "unknown"],
    ["2.0.0-beta", "1.0.0", "unknown"],
    ["2.0.0", "1.0.0-local", "unknown"],
  ] as const) {
    assert.equal(ageOf(other, ours), age, `${other} beside ${ours}`);
    const turned = age === "newer" ? "older" : age === "older" ? "newer" : age;
    assert.equal(ageOf(ours, other), turned, `${ours} beside ${other}`);
  }
});
