import assert from "node:assert/strict";
import { test } from "node:test";
import { compileBounded } from "./bounded-pattern.ts";
import { compileLinear } from "./linear-pattern.ts";

test("look-around means what it says", () => {
  const rows: readonly (readonly [string, string, boolean])[] = [
    ["^(?!.*(cn|hk)).*\\.example\\.com$", "a.example.com", true],
    ["^(?!.*(cn|hk)).*\\.example\\.com$", "hk1.example.com", false],
    ["(?=a)ab", "xab", true],
    ["(?<!b)a", "ba", false],
    ["(?i)^(?!AD)[a-z]+\\.COM$", "news.com", true],
    ["^((?!google).)*$", "www.google.com", false],
    ["^((?!google).)*$", "www.example.com", true],
  ];
  for (const [pattern, text, yes] of rows)
    assert.equal(compileLinear(pattern).test(text), yes, `${pattern} ${text}`);
  assert.equal(compileLinear("^(?!b)").test("a".repeat(300)), false); // no name is as long
});

test("what could be tried in too many ways is refused, not run", () => {
  for (const pattern of [
    "(?!x)(a+)+$",
    "(?!x)(a|a)*$",
    "(?=(a|aa)+$)b",
    "(?!x).*.*.*.*y",
    `(?!x)${"(a|a)".repeat(30)}b`,
    `(?!x)${"a?".repeat(40)}b`,
    "(?!x)((a{1,9}){1,9}){1,9}b",
    "(a)\\1",
    "(?<n>a)\\k<n>",
  ])
    assert.equal(compileBounded(pattern), null, pattern);
});

test("what is admitted ends soon on texts made for it", () => {
  for (const pattern of [
    "^(?!.*b).*c",
    "(?!.*b)c",
    "^(?=.*a)(?=.*b).*c$",
    "^((?!b).)*c$",
    "^(?!(a|b|c)d).{1,60}x$",
  ]) {
    const compiled = compileBounded(pattern);
    assert.ok(compiled !== null, pattern);
    for (const text of ["a".repeat(256), `${"a".repeat(255)}b`, "ab".repeat(128), "ac".repeat(128)]) {
      const before = process.threadCpuUsage();
      compiled.test(text);
      assert.ok(
        process.threadCpuUsage(before).user < 1_000_000,
        `${pattern} took a second of the thread's own time`,
      );
    }
  }
});
