import assert from "node:assert/strict";
import { test } from "node:test";
import { skipLarge } from "../../test/support/runs.ts";
import { testEnv } from "../../test/support/config-env.ts";
import { parseConfig } from "./parse.ts";
import { formatDiagnostic } from "./report.ts";

function linesOf(text: string): readonly string[] {
  const { errors = [], warnings } = parseConfig(text, testEnv());
  return [...errors, ...warnings].map((diagnostic) => formatDiagnostic("c", diagnostic));
}

test("a syntax fault says what would be right, once a place", () => {
  const samples: readonly (readonly [text: string, line: RegExp])[] = [
    ["dns:\n\tenable: true\n", /^c:2:1 dns: yaml: line 2: tabs are not allowed as indentation; use spaces$/],
    ["mixed-port 7890\nmode: rule\n", /^c:1:1 .*: expected "key: value"; a colon is missing/],
    ["mode: rule\nmixed-port\n", /^c:2:1 .*: expected "key: value"; the colon is missing/],
    ["mixed-port:7890\n", /^c:1:1 .*: expected a map of settings .*, got text$/],
    [
      "hosts:\n  *.a.com: 1.2.3.4\n",
      /^c:2:\d+ hosts: .* a \* at its beginning must be in quotes as a whole$/,
    ],
    ['rules:\n  - "MATCH",DIRECT\n', /^c:2:12 rules\[0\]: .*must be in quotes as a whole$/],
    ["interface-name: @a\n", /^c:1:17 interface-name: .*must be in quotes$/],
    [
      'proxies:\n  - {name: "abc, type: ss}\nrules: []\n',
      /^c:4:1 proxies\[0\]\.name: yaml: line 4: Missing closing "quote, opened at line 2$/,
    ],
  ];
  for (const [text, line] of samples) {
    const lines = linesOf(text);
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.match(lines[0] as string, line);
  }
});

test("characters that look like others are named", () => {
  assert.match(linesOf("mixed-port\uff1a7890\n").join(), /a full-width colon; write ":" and a space\)$/);
  assert.match(
    linesOf("mixed-port:\u00a07890\nmode: rule\n").join(),
    /a no-break space; write a plain one\)$/,
  );
});

test("a syntax fault repeats nothing of a value: it may be a secret", () => {
  const samples = [
    "secret: hunter2: x\n",
    'secret: "hunter2" x\n',
    'secret: "x" hunter2\n',
    'secret: "a\\hunter2"\n',
    "secret:hunter2\nmode: rule\n",
    'secret: "hunter2\nmode: rule\n',
    "secret: [hunter2\nmode: rule\n",
    "mode: rule\n} hunter2\n",
    "secret: hunter2\n  mode: rule\nports\n",
    "dns:\n  a: hunter2: x\n   b: c\n d\n",
    "proxy-providers:\n  p:\n    url: https://a/?token=hunter2#g: h\n",
  ];
  for (const text of samples) {
    const lines = linesOf(text);
    assert.ok(lines.length > 0, text);
    assert.doesNotMatch(lines.join("\n"), /hunter2/);
  }
});

test("what nests on and on is one short line", () => {
  for (const nested of [
    "a: " + "[".repeat(20_000),
    Array.from({ length: 3000 }, (_, at) => `${"  ".repeat(at)}a:\n`).join(""),
  ]) {
    const lines = linesOf(nested);
    assert.equal(lines.length, 1);
    assert.match(
      lines[0] as string,
      /^c:\d+:\d+ a(.{0,100}\.\.\.)?: yaml: line \d+: nested more than 64 levels deep$/,
    );
  }
});

test("of thousands of warnings the rest is counted", { skip: skipLarge }, () => {
  const text = Array.from({ length: 2500 }, (_, at) => `x${at}: 1\n`).join("");
  const { warnings } = parseConfig(text, testEnv());
  assert.equal(warnings.length, 2001);
  assert.equal(warnings.at(-1)?.message, "and 500 more warnings");
});

test("a long text that aliases put into thousands of messages is cut in each", { skip: skipLarge }, () => {
  const long = "x".repeat(100_000);
  const many = Array(3000).fill("*a").join(", ");
  const { errors = [] } = parseConfig(
    `a: &a "DOMAIN,${long},NOPE"\nrules: [${many}]\n? ${long}\n: 1\n`,
    testEnv(),
  );
  assert.equal(errors.length, 2001);
  assert.ok(errors.every(({ message, path }) => message.length < 1100 && path.length < 200));
});

test("a tag that means something elsewhere is warned of, one that says what a value is anyway is not", () => {
  const text = 'mixed-port: !!int "7890"\nsecret: !!binary aGk=\nmode: !env rule\nexternal-ui: !!str 5\n';
  assert.equal(parseConfig(text, testEnv()).config?.controller.secret, "aGk=");
  assert.deepEqual(linesOf(text), [
    "c:2:9 secret: yaml: line 2: the tag means nothing here and is left out",
    "c:3:7 mode: yaml: line 3: the tag means nothing here and is left out",
  ]);
});
