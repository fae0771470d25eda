/** Whatever the text: a value or errors with places, never a throw, and soon. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseConfig } from "#config/parse.ts";
import { brokenConfigs, GOOD_CONFIG } from "../support/broken-configs.ts";
import { codePoint } from "../support/code-points.ts";
import { testEnv } from "../support/config-env.ts";

const env = testEnv();

function check(text: string): void {
  const { errors, config, warnings } = parseConfig(text, env);
  assert.ok((config === undefined) === (errors !== undefined));
  for (const { line, column, message } of [...(errors ?? []), ...warnings])
    assert.ok(line >= 1 && column >= 1 && message !== "", message);
}

test("random text", () => {
  fc.assert(fc.property(fc.string({ maxLength: 300, unit: codePoint }), check), { numRuns: 1000 });
  const yamlish = fc.constantFrom(
    "a",
    "b",
    ": ",
    "- ",
    "\n",
    "  ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&x ",
    "*x",
    "<<: ",
    "|",
    ">",
    '"',
    "'",
    "#",
    "? ",
    "!t ",
    "proxies",
    "dns",
    "rules",
    "1",
    "~",
  );
  fc.assert(
    fc.property(fc.array(yamlish, { maxLength: 60 }), (parts) => check(parts.join(""))),
    { numRuns: 2000 },
  );
});

const keys = [
  "proxies",
  "proxy-groups",
  "listeners",
  "rules",
  "sub-rules",
  "dns",
  "tun",
  "sniffer",
  "hosts",
  "tunnels",
  "svc",
  "traffic-control",
  "proxy-providers",
  "rule-providers",
  "tls",
  "mode",
  "authentication",
];
const words = [
  "name",
  "type",
  "select",
  "socks5",
  "vless",
  "MATCH,DIRECT",
  "http",
  "port",
  "1",
  "true",
  "0x7",
  "a.b",
  "1.2.3.4/8",
  "enable",
  "nameserver",
  "*",
  "",
  "geosite:cn",
  "tcp,:1,a:2",
  "users",
  "use",
  "proxies",
];
const value = fc.letrec((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(...words),
    fc.array(tie("node"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...words, "server", "payload", "quota"), tie("node"), { maxKeys: 5 }),
  ),
})).node;

test("sections of every shape", () => {
  const file = fc.dictionary(fc.constantFrom(...keys), value, { maxKeys: 8 });
  fc.assert(
    fc.property(file, (map) => check(JSON.stringify(map))),
    { numRuns: 1500 },
  );
});

test("a good file with pieces cut out, doubled or exchanged", () => {
  const place = fc.nat({ max: GOOD_CONFIG.length });
  const texts = fc.constantFrom(
    GOOD_CONFIG,
    ...brokenConfigs()
      .slice(0, 20)
      .map(({ text }) => text),
  );
  fc.assert(
    fc.property(
      texts,
      place,
      place,
      fc.constantFrom("cut", "double", "flip"),
      fc.string({ maxLength: 3 }),
      (text, one, two, how, noise) => {
        const [from, to] = [Math.min(one, two), Math.min(Math.max(one, two), Math.min(one, two) + 80)];
        const piece = text.slice(from, to);
        const middle = how === "cut" ? "" : how === "double" ? piece + piece : noise;
        check(text.slice(0, from) + middle + text.slice(to));
      },
    ),
    { numRuns: 400 },
  );
});

test("every truncation of a good file", () => {
  for (let length = 0; length < GOOD_CONFIG.length; length += 7) check(GOOD_CONFIG.slice(0, length));
});

test("files that want much work of the parser are read in bounded time", () => {
  const many = 20_000;
  const greedy = [
    "[".repeat(many),
    "{a: ".repeat(many),
    "- ".repeat(many),
    "a: &a [*a, *a]\n".repeat(many / 10),
    `proxies: [${"{},".repeat(many)}]`,
    `rules: [${"x,".repeat(many)}]`,
    `hosts: {${Array.from({ length: many }, (_, at) => `h${at}.a: h${at + 1}.a`).join(", ")}}`,
    `proxy-groups: [${Array.from({ length: 2000 }, (_, at) => `{name: g${at}, type: select, proxies: [g${at + 1}, g${(at * 7) % 2000}]}`).join(", ")}]`,
    `dns: {nameserver: [${"'htps://x',".repeat(many)}]}`,
    "a".repeat(many * 10),
  ];
  for (const text of greedy) check(text);
});
