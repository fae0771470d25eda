/** Structured edits of a file's text: the lines that they name change, all others keep their bytes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withEdits } from "#config/edit/index.ts";
import { ConfigError } from "#core/errors.ts";
import { checkedEdit, readPlain } from "../support/edit-check.ts";
import { randomFrom } from "../support/random.ts";
import { runs } from "../support/runs.ts";
import { randomEdit, variedProfile } from "../support/varied-profiles.ts";

const PROFILES = 50;

test("random edits of varied profiles: said is done, and no other line changes", () => {
  const pick = randomFrom(20_261_125);
  let refused = 0;
  for (let seed = 0; seed < PROFILES; seed++) {
    let text = variedProfile(seed);
    for (let at = 0; at < runs(500) / PROFILES; at++) {
      const after = checkedEdit(text, randomEdit(readPlain(text), pick));
      if (after === null) refused++;
      text = after ?? text;
    }
  }
  assert.ok(refused < runs(500) / 20, `${refused} refused: those that remove what is gone already`);
});

const FILE = `# mine
a: &a {x: 1}
b: *a
c:
  <<: *a
  y: 2 # two
rules:
  # first
  - MATCH,DIRECT # last
`;

test("a rule goes before the one that is named, above that one's comment", () => {
  const edited = withEdits(FILE, [
    { op: "add", path: ["rules"], value: "DOMAIN,a.example,REJECT", before: "MATCH,DIRECT" },
  ]);
  assert.equal(edited, FILE.replace("  # first", "  - DOMAIN,a.example,REJECT\n  # first"));
});

test("a value that others use by an anchor is refused; one laid over a merged key is not", () => {
  assert.throws(() => withEdits(FILE, [{ op: "set", path: ["a", "x"], value: 2 }]), ConfigError);
  assert.throws(
    () => withEdits(FILE, [{ op: "set", path: ["b", "x"], value: 2 }]),
    /b: cannot be edited: it is written as \*a/,
  );
  assert.throws(() => withEdits(FILE, [{ op: "remove", path: ["a"] }]), /unknown anchor 'a'/);
  assert.equal(
    withEdits(FILE, [{ op: "set", path: ["c", "x"], value: 3 }]),
    FILE.replace("# two\n", "# two\n  x: 3\n"),
  );
});

test("what is not there, or there twice, is named", () => {
  const twice = "rules: [a, a]\nproxies:\n- {name: n}\n";
  const edits = [
    [{ op: "remove", path: ["nothing"] }, /nothing: cannot be edited: it is not there/],
    [{ op: "remove", path: ["rules", "a"] }, /2 items are "a": say which by its index/],
    [{ op: "remove", path: ["proxies", "m"] }, /proxies: cannot be edited: no item is "m"/],
    [{ op: "add", path: ["proxies", "n"], value: 1 }, /it is no list/],
    [{ op: "set", path: ["proxies", 4, "name"], value: 1 }, /the list has 1 items/],
    [{ op: "set", path: [], value: 1 }, /an edit names a key/],
  ] as const;
  for (const [edit, message] of edits) assert.throws(() => withEdits(twice, [edit]), message);
  for (const bad of ["a: [", "- a\n", "a: 1\na: 2\n"])
    assert.throws(() => withEdits(bad, [{ op: "set", path: ["a"], value: 1 }]), ConfigError);
});

test("a map laid over a map keeps the comments of what stays", () => {
  const text = "dns:\n    enable: true # on\n    # servers\n    nameserver: [a, b]\n    ipv6: false\n";
  const value = { enable: false, nameserver: ["a", "b", "c"], listen: ":53" };
  assert.equal(
    withEdits(text, [{ op: "set", path: ["dns"], value }]),
    'dns:\n    enable: false # on\n    # servers\n    nameserver: [a, b, c]\n    listen: ":53"\n',
  );
});
