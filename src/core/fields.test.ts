import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseDurationMs } from "./duration.ts";
import { block, Fault, flag, int, list, maybe, parseInteger, Plain, text } from "./fields.ts";
import { parseRanges } from "./ranges.ts";

test("integers of every spelling", () => {
  const cases: readonly (readonly [string, number | null])[] = [
    ["7", 7],
    ["-7", -7],
    ["0x1F", 31],
    ["0o17", 15],
    ["0b11", 3],
    ["017", 15],
    ["09", 9],
    ["1_000", 1000],
    ["1.5", null],
    ["1e3", null],
    ["", null],
    ["99999999999999999999", null],
  ];
  for (const [source, wanted] of cases) assert.equal(parseInteger(source), wanted, source);
});

test("durations", () => {
  const cases: readonly (readonly [string, number | null])[] = [
    ["5m", 300_000],
    [" 31D ", 2_678_400_000],
    ["1d12h", 129_600_000],
    ["2w", 1_209_600_000],
    ["0m", null],
    ["5", null],
    ["5s", null],
    ["1.5h", null],
    ["999999999999w", null],
  ];
  for (const [source, wanted] of cases) assert.equal(parseDurationMs(source), wanted, source);
});

test("ranges", () => {
  assert.deepEqual(parseRanges("80/443, 1000-2000", 0, 65_535), [
    { from: 80, to: 80 },
    { from: 443, to: 443 },
    { from: 1000, to: 2000 },
  ]);
  assert.deepEqual(parseRanges("*", 0, 9), [{ from: 0, to: 9 }]);
  assert.deepEqual(parseRanges("9-1", 0, 9), [{ from: 1, to: 9 }]);
  for (const bad of ["10", "a", "1-2-3", "-1", "/", Array(29).fill("1").join("/")])
    assert.ok(parseRanges(bad, 0, 9) instanceof Fault, bad);
  fc.assert(fc.property(fc.string(), (source) => void parseRanges(source, 0, 65_535)));
});

test("blocks give camelCase, defaults and null for absent values; a quoted word is no flag", () => {
  const schema = block({
    "a-b": int(0, 9).default(3),
    "c-d-e": maybe(text()),
    f: flag().default(false),
    g: list(text()).default([]),
  });
  assert.deepEqual(schema.parse({}), { aB: 3, cDE: null, f: false, g: [] });
  assert.deepEqual(schema.parse({ "c-d-e": new Plain("007"), f: new Plain("yes"), g: new Plain("x") }), {
    aB: 3,
    cDE: "007",
    f: true,
    g: ["x"],
  });
  assert.ok(!schema.safeParse({ f: "true" }).success);
  assert.ok(!schema.safeParse({ "a-b": 10 }).success);
});
