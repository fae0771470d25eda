import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs } from "../../test/support/runs.ts";
import { normalizeDomain, parseDomainPattern } from "./domain-pattern.ts";
import type { DomainPattern } from "./domain-pattern.ts";
import { APEX, BELOW, DomainTable, EXACT, SUFFIX } from "./domain-table.ts";
import { DomainTrie } from "./domain-trie.ts";

const pattern = (text: string) => parseDomainPattern(text) as DomainPattern;
const label = fc.constantFrom("a", "b", "com", "xn--p1ai", "*");
const host = fc
  .array(
    label.filter((l) => l !== "*"),
    { minLength: 1, maxLength: 4 },
  )
  .map((l) => l.join("."));
const anyPattern = fc
  .tuple(fc.constantFrom("", ".", "+."), fc.array(label, { minLength: 1, maxLength: 4 }))
  .map(([head, labels]) => head + labels.join("."));

function covers({ name, covers: kinds }: DomainPattern, wanted: string): "exact" | "suffix" | null {
  const parts = name.split(".");
  const labels = wanted.split(".");
  if (parts.length > labels.length) return null;
  const tail = labels.slice(labels.length - parts.length);
  if (!parts.every((part, at) => part === "*" || part === tail[at])) return null;
  if (parts.length === labels.length) return kinds & EXACT ? "exact" : kinds & APEX ? "suffix" : null;
  return kinds & BELOW ? "suffix" : null;
}

test("tables agree with trying every name", () => {
  const item = fc.tuple(host, fc.constantFrom(EXACT, BELOW, SUFFIX));
  fc.assert(
    fc.property(
      fc.array(item, { maxLength: 30 }),
      host,
      fc.integer({ min: -1, max: 30 }),
      fc.array(fc.boolean(), { minLength: 30, maxLength: 30 }),
      (items, wanted, after, skipped) => {
        const skip = Uint8Array.from(skipped, Number);
        const table = DomainTable.of(
          items.map(([name]) => name),
          Uint8Array.from(items, ([, kinds]) => kinds),
        );
        const expected = items.findIndex(
          ([name, kinds], at) =>
            at > after && !skipped[at] && covers({ name, covers: kinds, starred: false }, wanted) !== null,
        );
        assert.equal(table.lowest(wanted, after, skip), expected);
      },
    ),
    { numRuns: runs(500) },
  );
});

test("a trie matches exactly where one of its patterns does, and ranks exact, star, suffix", () => {
  const rank = (p: DomainPattern, kind: "exact" | "suffix") => (kind === "suffix" ? 2 : p.starred ? 1 : 0);
  fc.assert(
    fc.property(fc.array(anyPattern, { maxLength: 20 }), host, (texts, wanted) => {
      const patterns = texts.map(pattern);
      const trie = DomainTrie.of(patterns.map((p) => [p, p] as const));
      const found = patterns.flatMap((p) => {
        const kind = covers(p, wanted);
        return kind === null ? [] : [rank(p, kind)];
      });
      const got = trie.get(wanted);
      assert.equal(trie.has(wanted), found.length > 0);
      if (got !== undefined) assert.equal(rank(got, covers(got, wanted) as "exact"), Math.min(...found));
    }),
    { numRuns: runs(1000) },
  );
});

test("configuration.md §6.8: what each pattern matches", () => {
  const rows: [string, string[], string[]][] = [
    ["a.com", ["a.com"], ["b.a.com", "com"]],
    ["*.a.com", ["b.a.com"], ["a.com", "c.b.a.com"]],
    ["a.*.com", ["a.b.com"], ["a.com", "a.b.c.com"]],
    [".a.com", ["b.a.com", "c.b.a.com"], ["a.com", "ba.com"]],
    ["+.a.com", ["a.com", "b.a.com", "c.b.a.com"], ["ba.com"]],
    ["*", ["localhost"], ["a.com"]],
    ["*.*", ["a.com"], ["com", "b.a.com"]],
    ["+.*.com", ["a.com", "b.a.com"], ["com", "a.org"]],
    ["BÜCHER.example", ["xn--bcher-kva.example"], ["bucher.example"]],
  ];
  for (const [text, yes, no] of rows) {
    const trie = DomainTrie.of([[pattern(text), true]]);
    for (const name of yes) assert.ok(trie.has(name), `${text} matches ${name}`);
    for (const name of no) assert.ok(!trie.has(name), `${text} does not match ${name}`);
  }
  const trie = DomainTrie.of(
    ["+.a.com", "*.a.com", "www.a.com", "+.b.a.com", "+.a.com"].map((t, at) => [pattern(t), at]),
  );
  assert.equal(trie.get("www.a.com"), 2);
  assert.equal(trie.get("x.a.com"), 1);
  assert.equal(trie.get("x.y.a.com"), 0);
  assert.equal(trie.get("x.b.a.com"), 3);
  assert.equal(trie.get("a.com"), 0);
  const starred = DomainTrie.of(["+.*", "*"].map((t, at) => [pattern(t), at]));
  assert.equal(starred.get("a"), 1);
  assert.equal(starred.get("b.a"), 0);
});

test("bad patterns and names are refused", () => {
  for (const bad of [
    "",
    ".",
    "+.",
    "+",
    "a.com.",
    "a..com",
    "a*.com",
    "+a.com",
    "a.+.com",
    "a b.com",
    "a".repeat(254),
  ])
    assert.equal(parseDomainPattern(bad), null, bad);
  assert.equal(normalizeDomain("Example.COM."), "example.com");
  assert.equal(normalizeDomain("中国"), "xn--fiqs8s");
  assert.equal(normalizeDomain("a..b"), null);
});

test("hosts of any text are answered", () => {
  const trie = DomainTrie.of([
    [pattern("+.a.com"), 1],
    [pattern("*.b"), 2],
  ]);
  fc.assert(fc.property(fc.string({ unit: "binary-ascii" }), (text) => void trie.get(text)));
  const deep = DomainTrie.of([[pattern(`a.${"*.".repeat(60)}b`), 1]]);
  assert.equal(deep.get(`${"*.".repeat(61)}b`), undefined, "a host of stars tries no way twice");
  assert.equal(trie.get("."), undefined);
  assert.equal(trie.get("\u0161.a.com"), 1);
});
