import assert from "node:assert/strict";
import { test } from "node:test";
import { Plain } from "#core/fields.ts";
import { readYaml } from "./yaml.ts";

/** Plain scalars as `~text`, so that quoted ones differ. */
function shown(value: unknown): unknown {
  if (value instanceof Plain) return `~${value.source}`;
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shown(item)]));
}

function read(text: string): unknown {
  const { root, faults } = readYaml(text);
  assert.deepEqual(faults, []);
  return shown(root);
}

function faultsOf(text: string): readonly string[] {
  return readYaml(text).faults.map(
    ({ position, message }) => `${position.line}:${position.column} ${message}`,
  );
}

test("unquoted scalars keep their text, quoted ones are strings, null is absence", () => {
  const text = `a: 0123\nb: "0123"\nc: ~\nd:\ne: null\nf: 1e3\ng: !!str 7\nh: yes\ni: |\n  x\n  y\nj: [1, , ~]\n`;
  assert.deepEqual(read(text.replace("[1, , ~]", "[1, ~]")), {
    a: "~0123",
    b: "0123",
    f: "~1e3",
    g: "7",
    h: "~yes",
    i: "x\ny\n",
    j: ["~1", "~"],
  });
});

test("configuration.md 17.2: anchors and merge keys; what is written wins, then the earlier source", () => {
  const text = `
p: &p {udp: true, port: 1}
q: &q {port: 2, tls: yes}
one: {<<: *p, port: 9}
two:
  port: 8
  <<: [*p, *q]
three: {<<: *q, udp: ~}
four: {<<: {x: y}, list: &l [a]}
five: *l
`;
  const { one, two, three, four, five } = read(text) as Record<string, unknown>;
  assert.deepEqual(one, { port: "~9", udp: "~true" });
  assert.deepEqual(two, { port: "~8", udp: "~true", tls: "~yes" });
  assert.deepEqual(three, { port: "~2", tls: "~yes" });
  assert.deepEqual(four, { x: "~y", list: ["~a"] });
  assert.deepEqual(five, ["~a"]);
});

test("names with emoji, CJK, slashes and percent signs survive", () => {
  const names = ["🇭🇰 香港 01", "a/b%2F#c", "x  y"];
  assert.deepEqual(read(`n: [${names.map((name) => JSON.stringify(name)).join(", ")}]`), { n: names });
  assert.deepEqual(
    read("__proto__: 1\nconstructor: 2\n"),
    Object.fromEntries([
      ["__proto__", "~1"],
      ["constructor", "~2"],
    ]),
  );
});

test("faults say where", () => {
  assert.deepEqual(faultsOf("a: 1\nb: 2\na: 3\n"), [
    '3:1 yaml: line 3: mapping key "a" already defined at line 1',
  ]);
  assert.deepEqual(faultsOf("a: *x\n"), ["1:4 yaml: line 1: unknown anchor 'x' referenced"]);
  assert.deepEqual(faultsOf("a: &x [*x]\n"), ["1:8 yaml: line 1: anchor 'x' value contains itself"]);
  assert.deepEqual(faultsOf("a: {<<: 1}\n"), [
    "1:9 yaml: line 1: map merge requires map or sequence of maps as the value",
  ]);
  assert.deepEqual(faultsOf("- a\n"), [
    "1:1 yaml: line 1: expected a map of settings at the top of the file, such as mixed-port: 7890, got a list",
  ]);
  assert.deepEqual(faultsOf("a: {<<: *x}\nb: {<<: [*x]}\n"), [
    "1:9 yaml: line 1: unknown anchor 'x' referenced",
    "2:10 yaml: line 2: unknown anchor 'x' referenced",
  ]);
  assert.deepEqual(faultsOf("? [a]\n: b\n"), ["1:3 yaml: line 1: a key must be a single value"]);
  assert.deepEqual(faultsOf(" \n\t"), ["1:1 yaml: line 1: the configuration file is empty"]);
});

test("what stands in brackets has no indentation, and a comment may follow a quote or bracket at once", () => {
  const text = 'a: [\nx,\n"y"\n]\nb:\n  - {c: d,\n\te: {\nf: g}\n}#h\n  - i\nj: "k"#l\nm: |\n  [\n';
  assert.deepEqual(read(text), {
    a: ["~x", "y"],
    b: [{ c: "~d", e: { f: "~g" } }, "~i"],
    j: "k",
    m: "[\n",
  });
  const [unclosed = ""] = faultsOf("a: [\nx\nb: {c: d}\n");
  assert.match(unclosed, /^2:1 yaml: line 2: Flow sequence .* end with a \]/);
});

test("a document of comments is an empty map; a second document is only warned about", () => {
  assert.deepEqual(read("# nothing\n"), {});
  const { root, warnings } = readYaml("a: 1\n---\nb: 2\n");
  assert.deepEqual(shown(root), { a: "~1" });
  assert.deepEqual(
    warnings.map(({ position, message }) => `${position.line}:${position.column} ${message}`),
    ["2:1 yaml: line 2: only the first document is read"],
  );
});

test("an alias bomb and deep nesting are faults, soon", () => {
  const level = (at: number) =>
    `l${at}: &l${at} [${Array(10)
      .fill(`*l${at - 1}`)
      .join(",")}]\n`;
  const bomb = `l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 12 }, (_, at) => level(at + 1)).join("")}`;
  assert.match(faultsOf(bomb).join(), /excessive aliasing/);
  assert.match(faultsOf(`a: ${"[".repeat(100)}${"]".repeat(100)}`).join(), /nested more than 64 levels/);
  for (const nested of [`a: ${"[".repeat(50_000)}`, "[".repeat(50_000), `a: ${"[".repeat(100)}`])
    assert.match(faultsOf(nested).join("\n"), /^1:\d+ yaml: line 1: nested more than 64 levels deep$/);
  const wide = `a: ${"[".repeat(64)}[1],[2]${"]".repeat(64)}`;
  assert.deepEqual(faultsOf(wide), ["1:68 yaml: line 1: nested more than 64 levels deep"]);
});

test("paths are found in the text, through aliases, merges and other spellings", () => {
  const text = "p: &p\n  udp: x\nlist:\n  - {<<: *p, Skip_Cert: no}\n  - *p\nempty:\n";
  const { locate } = readYaml(text);
  assert.deepEqual(locate(["list", 0, "udp"], "value"), { line: 2, column: 8 });
  assert.deepEqual(locate(["list", 1, "udp"], "key"), { line: 2, column: 3 });
  assert.deepEqual(locate(["list", 0, "skip-cert"], "value"), { line: 4, column: 25 });
  assert.deepEqual(locate(["list", 0, "gone"], "value"), { line: 4, column: 5 });
  assert.deepEqual(locate(["empty"], "value"), { line: 6, column: 1 });
  assert.deepEqual(locate(["gone", 3], "value"), { line: 1, column: 1 });
});

test("documents of megabytes that nest or hold too much are refused before anything is built of them", () => {
  const before = process.threadCpuUsage();
  for (const [name, text] of [
    ["lists in lists", `proxies: ${"[".repeat(5_000_000)}`],
    ["maps in maps", "{a: ".repeat(1_250_000)],
    ["items in items", "- ".repeat(2_500_000)],
    ["keys of keys", "? ".repeat(2_500_000)],
    ["deeper and deeper", Array.from({ length: 2000 }, (_, at) => `${" ".repeat(at)}a:\n`).join("")],
  ] as const) {
    const { root, faults } = readYaml(text);
    assert.equal(root, null, name);
    assert.equal(faults.length, 1, name);
    assert.match(faults[0]?.message ?? "", /^yaml: line \d+: nested more than 64 levels deep$/, name);
  }
  const { user } = process.threadCpuUsage(before);
  assert.ok(
    user < 5_000_000,
    `${user / 1e6} s of the thread's own time; it was a minute, and then no memory`,
  );
});
