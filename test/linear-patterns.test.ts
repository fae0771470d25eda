/**
 * No regular expression of the program takes quadratic time on text from outside. Every literal runs over pumped strings;
 * the time is the thread's own, so a busy machine changes nothing, and quadratic is thousands of times beyond the bound.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { pumpsFor, regexLiterals } from "./support/regex-literals.ts";

const SRC = join(dirname(dirname(fileURLToPath(import.meta.url))), "src");

/** Characters that take an exponential expression 90 ms even where it is compiled: the longer strings would never come to an end. */
const EXPONENTIAL = 24;
const EXPONENTIAL_MS = 10;
/** Characters of the first look, and of the one that decides: quadratic is 2 ms and more, then 300 and more. */
const SHORT = 2_000;
const LONG = 20_000;
const SUSPICIOUS_MS = 1;
const QUADRATIC_MS = 60;

function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** The string that makes the expression slow; null: none was found. */
function slowInput(source: string, flags: string): string | null {
  const expression = new RegExp(source, flags.replace("y", ""));
  const run = (text: string): void =>
    void (flags.includes("g") ? text.replace(expression, "") : text.search(expression));
  for (const pump of pumpsFor(source))
    for (const [head, tail] of [
      ["", ""],
      ["", "\u0001"],
      ["a", "\u0001"],
      ["\n", "\n\u0001"],
    ] as const) {
      const pumped = (length: number): string => head + pump.repeat(length / pump.length) + tail;
      if (cpuMs(() => run(pumped(EXPONENTIAL))) > EXPONENTIAL_MS) return JSON.stringify(pumped(EXPONENTIAL));
      if (cpuMs(() => run(pumped(SHORT))) < SUSPICIOUS_MS) continue;
      if (cpuMs(() => run(pumped(LONG))) > QUADRATIC_MS) return JSON.stringify(head + pump + "…" + tail);
    }
  return null;
}

test("the check sees the expressions that once were here", () => {
  for (const [source, flags] of [
    ["=+$", ""],
    ["\\s+#.*$", ""],
    ["^\\s*(?:\\{\\s*)?[\"']?proxies[\"']?\\s*:", "m"],
    ["(a+)+b", ""],
  ] as const)
    assert.notEqual(slowInput(source, flags), null, source);
  for (const source of ["^[a-z]+$", "^(\\d{1,3})(?:-(\\d{1,3}))?$"])
    assert.equal(slowInput(source, ""), null, source);
});

test("no regular expression is quadratic", () => {
  const faults: string[] = [];
  let count = 0;
  for (const file of globSync("**/*.ts", { cwd: SRC }).sort()) {
    if (file.endsWith(".test.ts")) continue;
    for (const { line, source, flags } of regexLiterals(readFileSync(join(SRC, file), "utf8"))) {
      count++;
      const slow = slowInput(source, flags);
      if (slow !== null) faults.push(`${file}:${line} /${source}/${flags} on ${slow}`);
    }
  }
  assert.ok(count > 150, `only ${count} expressions were found`);
  assert.deepEqual(faults, []);
});
