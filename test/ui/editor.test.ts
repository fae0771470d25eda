import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { aboutKey, hintsAt, type Schema } from "#ui/editor/hints.ts";
import { diffLines, nearChanges } from "#ui/editor/line-diff.ts";
import { placeAt } from "#ui/editor/place.ts";

/** The place of `|` in a text. */
function at(text: string) {
  const caret = text.indexOf("|");
  return placeAt(text.replace("|", ""), caret);
}

test("the place of the caret is found by indentation, in maps, lists, and lists that are not indented", () => {
  for (const [text, path, key, typed, type] of [
    ["|", [], null, "", null],
    ["mo|", [], null, "mo", null],
    ["mode: ru|", [], "mode", "ru", null],
    ["dns:\n  en|", ["dns"], null, "en", null],
    ["dns:\n  enable: true\n\n  # words\n  fake-ip-filter:\n    - a\n  li|", ["dns"], null, "li", null],
    ["proxies:\n  - name: a\n    ty|", ["proxies", "-"], null, "ty", null],
    ["proxies:\n- name: a\n  type: vless\n  fl|", ["proxies", "-"], null, "fl", "vless"],
    ["proxies:\n  - na|\n    type: ss\n", ["proxies", "-"], null, "na", "ss"],
    ["proxies:\n  - type: ss\n  - na|\n", ["proxies", "-"], null, "na", null],
    ["proxies:\n  - type: vless\n    ws-opts:\n      pa|", ["proxies", "-", "ws-opts"], null, "pa", null],
    ["a:\n  b: 1\nrules:\n  - DOM|", ["rules", "-"], null, "DOM", null],
    ["tun:\n  x: 1\nlisteners:\n  - name: e\n    type: a|", ["listeners", "-"], "type", "a", null],
    ['hosts:\n  "a.b": 1|', ["hosts"], "a.b", "1", null],
  ] as const) {
    const place = at(text);
    assert.ok(place !== null, text);
    assert.deepEqual([place.path, place.key, place.typed, place.type], [path, key, typed, type], text);
    assert.equal(place.from, text.indexOf("|") - typed.length, text);
  }
  for (const none of ["a: { b: |", "# co|", "a: b: |"]) assert.equal(at(none), null, none);
});

const SCHEMA: Schema = {
  properties: {
    mode: { enum: ["rule", "global"], default: "rule", description: "how" },
    ipv6: { type: ["boolean", "string"] },
    hosts: { additionalProperties: { type: "string", examples: ["127.0.0.1"] } },
    proxies: {
      items: {
        anyOf: [
          { properties: { type: { const: "ss" }, cipher: { description: "ss only" } } },
          { properties: { type: { const: "vless" }, flow: { enum: ["vision"] } } },
        ],
      },
    },
  },
};

test("hints are what the schema allows at the place", () => {
  const hints = (text: string) => {
    const place = at(text);
    return place === null ? [] : hintsAt(SCHEMA, place).map((hint) => hint.text);
  };
  assert.deepEqual(hints("|"), ["mode: ", "ipv6: ", "hosts: ", "proxies: "]);
  assert.deepEqual(hints("mode: r|"), ["rule"]);
  assert.deepEqual(hints("ipv6: |"), ["true", "false"]);
  assert.deepEqual(hints("ipv6: t|"), ["true"]);
  assert.deepEqual(hints("hosts:\n  a: 1|"), ["127.0.0.1"]);
  assert.deepEqual(hints("proxies:\n  - |"), ["type: ", "cipher: ", "flow: "]);
  assert.deepEqual(hints("proxies:\n  - type: ss\n    |"), ["type: ", "cipher: "]);
  assert.deepEqual(
    hints("proxies:\n  - type: v|"),
    ["vless"],
    "a type that is not known yet decides nothing",
  );
  assert.deepEqual(hints("constructor:\n  |"), []);
  const place = at("mode: r|");
  assert.equal(place && aboutKey(SCHEMA, place)?.description, "how");
});

test("any text and any caret has a place or none, a long one too", () => {
  const line = fc.constantFrom(
    "a:",
    "  - b: c",
    "    d: 'e'",
    "- f",
    "",
    "# g",
    "  h: { i: j }",
    "\t:",
    "- - k: l",
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 30 }), fc.nat(), (lines, number) => {
      const text = lines.join("\n");
      const place = placeAt(text, number % (text.length + 1));
      assert.ok(place === null || place.path.length <= 60);
    }),
    { numRuns: 300 },
  );
  const long = `proxies:\n${"  - name: a\n    type: ss\n".repeat(100_000)}  - na`;
  assert.deepEqual(placeAt(long, long.length)?.path.at(-1), "-");
});

test("a difference of lines turns the one text into the other", () => {
  const text = fc
    .array(fc.constantFrom("a", "b", "c", ""), { maxLength: 12 })
    .map((lines) => lines.join("\n"));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after);
      const of = (kinds: readonly string[]) =>
        lines.filter(({ kind }) => kinds.includes(kind)).map((line) => line.text);
      assert.equal(of(["same", "added"]).join("\n"), after);
      assert.equal(of(["same", "removed"]).join("\n"), before);
      assert.ok(before !== after || lines.every(({ kind }) => kind === "same"));
    }),
    { numRuns: 500 },
  );
  const many = Array.from({ length: 10_000 }, (_, line) => `${line}`);
  const near = nearChanges(diffLines(many.join("\n"), many.with(5_000, "x").join("\n")));
  assert.deepEqual(
    [near.length, near[0], near.at(-1), near[4]?.kind, near[5]?.kind],
    [10, null, null, "removed", "added"],
  );
  assert.equal(
    diffLines("a\n".repeat(5_000), "b\n".repeat(5_000)).length,
    10_001,
    "too much to compare: replaced",
  );
});
