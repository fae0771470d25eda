import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Plain } from "#core/fields.ts";
import { runs } from "../../test/support/runs.ts";
import { plainRules } from "./plain-rules.ts";
import { readYaml } from "./yaml.ts";

const shown = (item: unknown): unknown => (item instanceof Plain ? `~${item.source}` : item);

/** All that is known of a file: its rules with their places, and the place of the key behind them. */
function seen(text: string, takeOut = plainRules): unknown {
  const { root, faults, locate, emptyKeys } = readYaml(text, takeOut);
  const rules = root?.["rules"];
  const items = Array.isArray(rules) ? rules.map(shown) : rules;
  const { line } = locate(["rules"], "key");
  return {
    items,
    faults: faults.map(({ position: { line: at }, path, message }) => [at, path, message]),
    places: Array.isArray(rules) ? rules.map((_, at) => locate(["rules", at], "value")) : null,
    key: line,
    next: locate(["mode"], "value"),
    mode: shown(root?.["mode"]),
    empty: emptyKeys([]),
  };
}

/** As the library reads all of it. */
const seenInFull = (text: string): unknown => seen(text, () => null);

test("plain rules: lists as they are written are read line by line", () => {
  const text = `port: 1 # one
rules: # mine
  # first
  - DOMAIN,a.com,DIRECT
  - 'DOMAIN-SUFFIX,b.com,🚀 fast' # two

  - "AND,((DOMAIN,c.com),(NETWORK,udp)),DIRECT"
  -   IP-CIDR6,2001:db8::/32,DIRECT,no-resolve   # three
# last
mode: rule
`;
  assert.deepEqual(plainRules(text)?.items.map(shown), [
    "~DOMAIN,a.com,DIRECT",
    "DOMAIN-SUFFIX,b.com,🚀 fast",
    "AND,((DOMAIN,c.com),(NETWORK,udp)),DIRECT",
    "~IP-CIDR6,2001:db8::/32,DIRECT,no-resolve",
  ]);
  assert.equal(plainRules(text)?.rest.length, text.length);
  for (const written of [text, text.replaceAll("\n", "\r\n"), text.replace(/mode[^]*$/, "").trimEnd()])
    assert.deepEqual(seen(written), seenInFull(written));
});

test("plain rules: whatever stands there, the library would say the same", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "- MATCH,DIRECT",
      "- 'DOMAIN,a,G'",
      '- "DOMAIN,b,G" # c',
      "- DOMAIN,a#b,G #c",
      "# c",
      "",
      "-",
      "- ",
      "- *x",
      "- &x a,b",
      "- [a, b]",
      "- {a: b}",
      "- a: b,c",
      "- a,b:",
      "- 'a''b,c'",
      '- "a\\tb,c"',
      "- null",
      "- |",
      "- - a,b",
      "-\ta,b",
      "a,b",
      "---",
      "...",
      "x: 1",
      "rules:",
      "? a,b",
      "- a,b\t# c",
      "- a,b\u00a0# c",
      "- 🚀,b",
    ),
    fc.string({ maxLength: 6 }).map((text) => `- A,${text}`),
  );
  const indented = fc
    .tuple(fc.constantFrom("", "  ", "  ", "  ", "    "), line)
    .map((parts) => parts.join(""));
  const head = fc.constantFrom(
    "rules:",
    "rules: # c",
    "port: 1\nrules:",
    "{",
    "a: |\n rules:",
    '"a',
    "---\nrules:",
    " rules:",
  );
  const file = fc
    .tuple(
      head,
      fc.array(indented, { maxLength: 5 }),
      fc.constantFrom("mode: rule\n", "  mode: rule", ""),
      fc.boolean(),
    )
    .map(([first, lines, last, returns]) => [first, ...lines, last].join(returns ? "\r\n" : "\n"));
  fc.assert(
    fc.property(file, (text) => {
      assert.deepEqual(seen(text), seenInFull(text));
    }),
    { numRuns: runs(2_000) },
  );
});

test("plain rules: a line of blanks takes no longer than its length", () => {
  const text = `rules:\n  - DOMAIN,a.com${" ".repeat(1_000_000)}x,DIRECT\n${" ".repeat(1_000_000)}x: 1\n`;
  assert.equal(plainRules(text), null);
});
