/**
 * One entry of a good profile is changed at random, thousands of times. All other entries stay as they were, whether the
 * changed one is usable, left out or inert; or the file is refused at the line of that entry, for a reason that stays one.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { REGISTRIES } from "#cli/parse-env.ts";
import type { Config } from "#config/config.ts";
import { parseConfig } from "#config/parse.ts";
import { GOOD_ENTRIES, profileOf, type Entry } from "../support/good-entries.ts";
import { mutated, pick } from "../support/mutated.ts";
import { randomFrom } from "../support/random.ts";

/** `ENTRY_MUTATIONS=2000` makes more of them. */
const MUTATIONS = Number(process.env["ENTRY_MUTATIONS"] ?? 300);

/** Why a file is still refused: what was meant cannot be known, or what a key protects would be weaker. */
const REASONS: readonly RegExp[] = [
  /expected (a single value|a map|a list|a line|an integer|true or false|numbers or ranges|one of|at least one)/,
  /expected (an IP address|IP addresses|a CIDR|host:port|network,address|"|TYPE|another domain)/,
  /has unset fields|missing name|' missing$|must not be empty|needs at least one|is empty:/,
  /not found|unsupport|unknown|duplicate|is the duplicate/,
  /format invalid|is no (network|range|inbound type)|bracket|condition is missing|'password' is required|needs names|needs mode|needs host|needs a key|expected xtls|holds only/,
];

const parse = (text: string) =>
  parseConfig(text, { registries: REGISTRIES, files: { resolve: (path) => path }, userAgent: "test" });

/** Every entry of a configuration as text. */
function entriesOf(config: Config): readonly string[] {
  const texts = (section: string, items: Iterable<unknown>) =>
    [...items].map((item) => `${section} ${JSON.stringify(item)}`);
  const { dns, sniffer } = config;
  return [
    ...texts(
      "proxies",
      config.proxies.map(({ protocol, ...rest }) => [protocol?.type, rest]),
    ),
    ...texts(
      "groups",
      config.groups.map(({ kind, ...rest }) => [kind.type, rest]),
    ),
    ...texts(
      "listeners",
      config.listeners.map(({ protocol, ...rest }) => [protocol.type, rest]),
    ),
    ...texts(
      "rules",
      config.rules.map(({ text, type, target }) => [text, type.type, target]),
    ),
    ...texts("tunnels", config.tunnels),
    ...texts("accounts", config.accounts),
    ...texts("skip-auth", config.skipAuthPrefixes),
    ...texts("hosts", config.hosts),
    ...texts("rule-providers", config.ruleProviders),
    ...texts("proxy-providers", config.proxyProviders),
    ...texts("nameserver", dns.nameserver),
    ...texts("fake-ip-filter", dns.fakeIpFilter),
    ...texts("ipcidr", dns.fallbackFilter.ipcidr),
    ...texts("domain", dns.fallbackFilter.domain),
    ...texts("policy", dns.nameserverPolicy),
    ...texts("skip-domain", sniffer.skipDomain),
    ...texts("force-domain", sniffer.forceDomain),
  ];
}

function others(entry: Entry): readonly string[] {
  const { config, errors } = parse(profileOf(GOOD_ENTRIES.filter((other) => other !== entry)).text);
  assert.deepEqual(errors, undefined);
  return entriesOf(config as Config);
}

test("a changed entry costs itself, or is refused in its own line for a reason that stays one", () => {
  const good = parse(profileOf(GOOD_ENTRIES).text);
  assert.deepEqual([good.errors, good.warnings.filter(({ line }) => line === 0)], [undefined, []]);
  const random = randomFrom(0x2a);
  const known = new Map<Entry, readonly string[]>();
  let refused = 0;
  for (let turn = 0; turn < MUTATIONS; turn++) {
    const entry = pick(GOOD_ENTRIES, random);
    const changed: Entry = { ...entry, value: mutated(entry.value, random) };
    const { text, lineOf } = profileOf(GOOD_ENTRIES.map((other) => (other === entry ? changed : other)));
    const { config, errors = [] } = parse(text);
    const about = `${entry.section}: ${JSON.stringify(changed.value)}`;
    for (const { line, message } of errors) {
      assert.equal(line, lineOf(changed), `${about}: ${message}`);
      assert.ok(
        REASONS.some((reason) => reason.test(message)),
        `${about}: ${message}`,
      );
    }
    if (config === undefined) {
      refused++;
      continue;
    }
    const rest = known.get(entry) ?? others(entry);
    known.set(entry, rest);
    const left = new Set(entriesOf(config));
    assert.deepEqual(
      rest.filter((item) => !left.has(item)),
      [],
      about,
    );
  }
  assert.ok(refused < MUTATIONS * 0.8, `${refused} of ${MUTATIONS} refused`);
});

test("shadow-tls and restls make a node or a listener of any kind inert, under whatever key they stand", () => {
  for (const key of ["shadow-tls", "shadow-tls-opts", "restls", "restls-opts", "res-tls"])
    for (const entry of GOOD_ENTRIES.filter(({ section }) => ["proxies", "listeners"].includes(section))) {
      const value = { ...(entry.value as object), [key]: { enable: true, password: "p", version: 3 } };
      const { config, errors, warnings } = parse(profileOf([{ ...entry, value }]).text);
      assert.equal(errors, undefined);
      assert.deepEqual(config?.listeners, [], `${key} of ${JSON.stringify(entry.value)}`);
      for (const { name, inert } of config.proxies) assert.ok(inert !== null, `${key} of ${name}`);
      assert.equal(warnings.filter(({ message }) => /(restls|shadow-tls) is not/.test(message)).length, 1);
    }
});
