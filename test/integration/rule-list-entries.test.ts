/** Rule lists with bad entries of every kind between good ones, in the running program: the good ones decide. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { chainOf, startWith } from "../support/provider-core.ts";

/** Each behaviour's good entries, and what is none of them. */
const BEHAVIORS = {
  domain: {
    good: ["one.domain.example", "+.two.domain.example", "last.domain.example"],
    bad: ["bad..name", "-", "a b.example", "x.", "*.*.", "http://url.example/", "{a: 1}", "192.0.2.1/33"],
    asked: ["one.domain.example", "www.two.domain.example", "last.domain.example"],
  },
  ipcidr: {
    good: ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7"],
    bad: ["192.0.2.0/33", "300.1.1.1", "2001:db8::/129", "name.example", "192.0.2", "{a: 1}", "[1, 2]"],
    asked: ["192.0.2.9", "2001:db8::9", "198.51.100.7"],
  },
  classical: {
    good: [
      "DOMAIN,one.classical.example",
      "DOMAIN-SUFFIX,two.classical.example",
      "IP-CIDR,203.0.113.0/24,no-resolve",
    ],
    bad: [
      "NO-SUCH-TYPE,x",
      "DOMAIN",
      "IP-CIDR,203.0.113.0/99",
      "DOMAIN-REGEX,(",
      "DST-PORT,99999",
      "AND,((DOMAIN,x),",
      "{a: 1}",
      "PROCESS-NAME-REGEX,[",
    ],
    asked: ["one.classical.example", "www.two.classical.example", "203.0.113.9"],
  },
} as const;

/** A good entry first and last, bad ones between them. */
const mixed = ({ good, bad }: { good: readonly string[]; bad: readonly string[] }): readonly string[] => [
  ...good.slice(0, 1),
  ...bad,
  ...good.slice(1),
];
const asText = (entries: readonly string[]): string => entries.map((entry) => `${entry}\n`).join("");
const asYaml = (entries: readonly string[]): string =>
  `payload:\n${entries.map((entry) => `  - ${entry.startsWith("{") || entry.startsWith("[") ? entry : `'${entry}'`}\n`).join("")}`;

for (const format of ["text", "yaml"] as const) {
  test(`${format}: a bad entry of a list costs itself`, async () => {
    const kinds = Object.entries(BEHAVIORS);
    const files = kinds.map(([behavior, entries]) => {
      const lines = mixed(entries);
      return [`${behavior}.list`, format === "text" ? asText(lines) : asYaml(lines)] as const;
    });
    const providers = kinds.map(
      ([behavior]) =>
        `  ${behavior}: {type: file, path: ${behavior}.list, behavior: ${behavior}, format: ${format}}`,
    );
    await using core = await startWith(
      [
        "proxies:",
        ...kinds.map(([behavior]) => `  - {name: of-${behavior}, type: reject}`),
        "rule-providers:",
        ...providers,
        "rules:",
        ...kinds.map(([behavior]) => `  - RULE-SET,${behavior},of-${behavior}`),
        "",
      ].join("\n"),
      Object.fromEntries(files),
    );
    for (const [behavior, { asked }] of kinds)
      for (const destination of asked)
        assert.equal(await chainOf(core, destination), `of-${behavior}`, `${behavior}: ${destination}`);
    for (const [behavior] of kinds)
      assert.match(core.output(), new RegExp(`rule provider ${behavior}: .*(skipped|left out)`));
  });
}
