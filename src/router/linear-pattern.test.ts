import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ConfigError } from "#core/errors.ts";
import { runs } from "../../test/support/runs.ts";
import { compileLinear } from "./linear-pattern.ts";

test("patterns that make a backtracking engine hang end at once", () => {
  const hostile = ["(a+)+$", "^(a|a)*$", "(a|aa)+$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$", "(?:a*)*b"];
  const text = `${"a".repeat(4000)}!`;
  for (const pattern of hostile) assert.equal(compileLinear(pattern).test(text), false, pattern);
});

test("what cannot run in linear time is refused with what would be right", () => {
  for (const pattern of [
    "(?=(a+)+$)b",
    "(a)\\1",
    "(?<n>a)\\k<n>",
    "(?:ab|c){1,40}",
    "((a{1,9}){1,9}){1,9}",
    "a{2000}",
  ])
    assert.throws(
      () => compileLinear(pattern),
      (error) => error instanceof ConfigError && /linear|too large/.test(error.message),
      pattern,
    );
  for (const pattern of ["(", "a{3,1}", "[b-a]", "", "*", "a".repeat(3000)])
    assert.throws(() => compileLinear(pattern), ConfigError, pattern);
});

test("case is ignored in literals, classes and escapes", () => {
  const rows: [string, string, boolean][] = [
    ["^AD[S-X]\\.Example\\.COM$", "ads.example.com", true],
    ["\\x41\\u0042", "ab", true],
    ["\\D\\W\\S", "a-b", true],
    ["^\\D+$", "1", false],
    ["[\\D]", "1", false],
    ["(?i)^FOO", "foobar", true],
    ["^[^A]", "a", false],
  ];
  for (const [pattern, text, yes] of rows) assert.equal(compileLinear(pattern).test(text), yes, pattern);
});

test("large repeats of one character mean what they say", () => {
  const atom = fc.constantFrom("a", "[ab]", "\\w", ".");
  const bounds = fc.tuple(fc.nat({ max: 40 }), fc.nat({ max: 40 }), fc.boolean());
  fc.assert(
    fc.property(atom, bounds, fc.nat({ max: 90 }), (piece, [low, extra, open], length) => {
      const source = `^${piece}{${low},${open ? "" : low + extra}}$`;
      const text = "a".repeat(length);
      assert.equal(compileLinear(source).test(text), new RegExp(source).test(text), source);
    }),
  );
  assert.ok(compileLinear("^(?:[a-z0-9]{1,63}\\.)+com$").test("a.b.com"));
});

test("any text is compiled or refused", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(..."ab\\[](){}|*+?^$.,1-<>:=!".split("")) }), (text) => {
      try {
        compileLinear(text).test("aabb");
      } catch (error) {
        assert.ok(error instanceof ConfigError, `${text}: ${error}`);
      }
    }),
    { numRuns: runs(2000) },
  );
});
