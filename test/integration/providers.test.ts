/** Providers in the running program, seen through the Controller. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseCidr, type Cidr } from "#net/address/cidr.ts";
import { encodeCidrMrs, encodeDomainMrs } from "#providers/rule-set/mrs.ts";
import { chainOf, get, groupOf, startWith } from "../support/provider-core.ts";
import { until } from "../support/until.ts";

test("configuration.md §17 check 5: include-all, filter with backtick, exclude-type, hidden, icon", async () => {
  await using core = await startWith(
    `
proxies:
  - {name: zz, type: direct}
  - {name: b-proxy, type: socks5, server: 127.0.0.1, port: 1}
  - {name: a-proxy, type: http, server: 127.0.0.1, port: 1}
proxy-providers:
  second: {type: inline, payload: [{name: US 2, type: socks5, server: 127.0.0.1, port: 2}, {name: JP 2, type: http, server: 127.0.0.1, port: 2}]}
  first: {type: file, path: nodes.yaml, override: {additional-prefix: "p:", proxy-name: [{pattern: Tokyo, target: JP}]}}
proxy-groups:
  - {name: everything, type: select, include-all: true, hidden: true, icon: "https://icons.example/a.png"}
  - {name: filtered, type: select, proxies: [DIRECT], use: [second, first], filter: "(?i)jp\`US"}
  - {name: excluded, type: select, use: [second, first], exclude-filter: "1$", exclude-type: "Http|Vless"}
`,
    {
      "nodes.yaml":
        "proxies:\n  - {name: Tokyo 1, type: socks5, server: 127.0.0.1, port: 3}\n  - {name: US 1, type: http, server: 127.0.0.1, port: 3}\n",
    },
  );
  const everything = await groupOf(core, "everything");
  assert.deepEqual(everything.all, ["a-proxy", "b-proxy", "zz", "p:JP 1", "p:US 1", "US 2", "JP 2"]);
  assert.deepEqual([everything.hidden, everything.icon], [true, "https://icons.example/a.png"]);
  assert.deepEqual((await groupOf(core, "filtered")).all, ["DIRECT", "JP 2", "p:JP 1", "US 2", "p:US 1"]);
  assert.deepEqual((await groupOf(core, "excluded")).all, ["US 2"]);
  const { proxies } = await get<{ proxies: Record<string, unknown> }>(core, "/proxies");
  assert.equal(proxies["US 2"], undefined, "nodes of providers are visible through groups only");
});

test("controller-api.md §6.1: nodes say how they carry UDP", async () => {
  await using core = await startWith(`
proxies:
  - {name: plain, type: vless, server: 127.0.0.1, port: 1, uuid: x, packet-encoding: ""}
  - {name: usual, type: vless, server: 127.0.0.1, port: 1, uuid: x}
  - {name: over, type: ss, server: 127.0.0.1, port: 1, cipher: none, password: "", udp-over-tcp: true}
`);
  type Flags = { uot: boolean; xudp: boolean };
  const { proxies } = await get<{ proxies: Record<string, Flags> }>(core, "/proxies");
  const flags = ["plain", "usual", "over"].map((name) => [proxies[name]?.uot, proxies[name]?.xudp]);
  assert.deepEqual(flags, [
    [false, false],
    [false, true],
    [true, false],
  ]);
});

test("configuration.md §17 check 6: RULE-SET in all behaviours and formats, nested logic, commas in DOMAIN-REGEX", async () => {
  const cidrs = ["192.0.2.0/24", "2001:db8::/32"].map((text) => parseCidr(text) as Cidr);
  const providers = {
    dy: "domain, format: yaml",
    dt: "domain, format: text",
    dm: "domain, format: mrs",
    iy: "ipcidr, format: yaml",
    it: "ipcidr, format: text",
    im: "ipcidr, format: mrs",
    cy: "classical, format: yaml",
    ct: "classical, format: text",
  };
  const lines = Object.entries(providers).map(
    ([name, kind]) => `  ${name}: {type: file, path: ${name}, behavior: ${kind}}`,
  );
  const proxies = [...Object.keys(providers), "di", "ii", "ci", "logic", "regex"].map(
    (name) => `  - {name: "${name}", type: reject}`,
  );
  await using core = await startWith(
    `
proxies:
${proxies.join("\n")}
rule-providers:
${lines.join("\n")}
  di: {type: inline, behavior: domain, payload: ["*.di.example"]}
  ii: {type: inline, behavior: ipcidr, payload: ["203.0.113.9"]}
  ci: {type: inline, behavior: classical, payload: ["AND,((DOMAIN-SUFFIX,ci.example),(NOT,((DOMAIN-KEYWORD,not))))"]}
rules:
  - AND,((OR,((DOMAIN,a.logic.example),(RULE-SET,ci))),(NOT,((DOMAIN-SUFFIX,x.ci.example)))),logic
  - DOMAIN-REGEX,^r{1,2}\\.example$,regex
${[...Object.keys(providers), "di", "ii", "ci"].map((name) => `  - RULE-SET,${name},${name}${name.startsWith("i") ? ",no-resolve" : ""}`).join("\n")}
  - MATCH,DIRECT
`,
    {
      dy: "payload:\n  - '+.dy.example'\n",
      dt: "# text\n.dt.example\n",
      dm: await encodeDomainMrs(["+.dm.example", "*.star.example"]),
      iy: "payload:\n  - 198.51.100.0/25\n",
      it: "198.51.100.128/25\n",
      im: await encodeCidrMrs(cidrs),
      cy: "payload:\n  - DOMAIN-KEYWORD,keycy\n  - IP-CIDR,203.0.113.1/32,no-resolve\n  - MATCH,x\n",
      ct: "DOMAIN-SUFFIX,ct.example\n",
    },
  );
  const expected: Readonly<Record<string, string>> = {
    "a.dy.example": "dy",
    "dy.example": "dy",
    "a.b.dt.example": "dt",
    "dt.example": "DIRECT",
    "dm.example": "dm",
    "a.star.example": "dm",
    "198.51.100.1": "iy",
    "198.51.100.200": "it",
    "192.0.2.7": "im",
    "[2001:db8::1]": "im",
    "xkeycyx.example": "cy",
    "203.0.113.1": "cy",
    "a.ct.example": "ct",
    "a.di.example": "di",
    "a.b.di.example": "DIRECT",
    "203.0.113.9": "ii",
    "a.logic.example": "logic",
    "ci.example": "logic",
    "x.ci.example": "ci",
    "not.ci.example": "DIRECT",
    "rr.example": "regex",
    "rrr.example": "DIRECT",
  };
  for (const [destination, target] of Object.entries(expected))
    assert.equal(await chainOf(core, encodeURIComponent(destination)), target, destination);
  const { providers: seen } = await get<{
    providers: Record<string, { ruleCount: number; format: string; behavior: string }>;
  }>(core, "/providers/rules");
  assert.deepEqual(
    [seen["dm"]?.ruleCount, seen["dm"]?.format, seen["im"]?.behavior],
    [2, "MrsRule", "IPCIDR"],
  );
  assert.deepEqual([seen["cy"]?.ruleCount, seen["ci"]?.format], [2, ""]);
});

test("a watched file is used when it changes, and kept in use when it breaks", async () => {
  await using core = await startWith(
    `
rule-providers:
  f: {type: file, behavior: domain, format: yaml, path: f.yaml}
proxy-providers:
  n: {type: file, path: n.yaml}
proxy-groups:
  - {name: G, type: select, use: [n]}
rules:
  - RULE-SET,f,REJECT
`,
    { "f.yaml": "payload:\n- a.example\n", "n.yaml": "proxies:\n- {name: x, type: direct}\n" },
  );
  assert.equal(await chainOf(core, "a.example"), "REJECT");
  writeFileSync(join(core.home, "f.yaml"), "payload:\n- b.example\n");
  await until("the new list", async () => (await chainOf(core, "b.example")) === "REJECT");
  writeFileSync(join(core.home, "n.yaml"), "proxies:\n- {name: y, type: direct}\n- {name: z\n");
  await core.shows(/proxy provider n: .*the old contents stay in use/);
  assert.deepEqual((await groupOf(core, "G")).all, ["x"]);
});
