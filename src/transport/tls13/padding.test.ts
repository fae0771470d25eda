import assert from "node:assert/strict";
import { test } from "node:test";
import { lastBeforePadding } from "./padding.ts";

test("padding of every length around what is compared at once ends where the type stands", () => {
  for (const from of [0, 3])
    for (const content of [0, 1, 300])
      for (const padding of [0, 1, 300, 2047, 2048, 2049, 4096, 4097, 9_000]) {
        const bytes = Buffer.alloc(from + content + 1 + padding + 7);
        bytes.fill(9, 0, from);
        bytes[from + content] = 23;
        bytes.fill(9, from + content + 1 + padding);
        const end = from + content + 1 + padding;
        assert.equal(lastBeforePadding(bytes, from, end), from + content, `${from} ${content} ${padding}`);
      }
});

test("of zeros alone none is found, whatever is in front of them", () => {
  for (const zeros of [0, 1, 2047, 2048, 2049, 5_000]) {
    const bytes = Buffer.concat([Buffer.of(1, 2, 3), Buffer.alloc(zeros)]);
    assert.equal(lastBeforePadding(bytes, 3, bytes.length), 2, `${zeros}`);
  }
});
