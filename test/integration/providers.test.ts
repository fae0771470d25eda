/** Providers and databases in the running program, seen through the Controller. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { encodeCidrMrs, encodeDomainMrs } from "#providers/rule-set/mrs.ts";
import { parseCidr, type Cidr } from "#net/cidr.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { noRealData, REAL_DATA } from "../support/real-data.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

interface Site extends AsyncDisposable {
  readonly url: string;
  /** Body and headers by path; absent: 404. */
  readonly pages: Map<string, { body: string | Uint8Array; headers?: Record<string, string> }>;
  readonly asked: string[];
}

async function openSite(): Promise<Site> {
  const pages: Site["pages"] = new Map();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers["user-agent"]}`);
    const page = pages.get(request.url ?? "");
    if (page === undefined) return void response.writeHead(404).end();
    response.writeHead(200, page.headers).end(page.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pages,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const HEAD = "mixed-port: 0\nexternal-controller: 127.0.0.1:0\nsecret: s\nipv6: false\n";

/** Starts with files in its home directory already. */
async function start(
  config: string,
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Promise<Core> {
  const core = await startCore(`${HEAD}mode: direct\n`); // a first configuration, so that the home is there
  for (const [name, body] of Object.entries(files)) {
    mkdirSync(dirname(join(core.home, name)), { recursive: true });
    writeFileSync(join(core.home, name), body);
  }
  core.write(HEAD + config);
  const answer = await api(core, "/configs?force=true", { method: "PUT", body: "{}" });
  assert.equal(answer.status, 204, await answer.text());
  return core;
}

async function api(core: Core, path: string, init: RequestInit = {}): Promise<Response> {
  const [, port] = await core.shows(/controller: http on 127\.0\.0\.1:(\d+)/);
  return fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { Authorization: "Bearer s" } });
}

async function get<T>(core: Core, path: string): Promise<T> {
  const answer = await api(core, path);
  assert.equal(answer.status, 200, path);
  return (await answer.json()) as T;
}

/** Asks until it is so; a download takes its time. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 15_000; !(await holds());) {
    assert.ok(Date.now() < end, `never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function chainOf(core: Core, destination: string): Promise<string> {
  const { chain } = await get<{ chain: string[] }>(core, `/rules/explain?destination=${destination}`);
  return chain.join(">");
}

const groupOf = (core: Core, name: string) =>
  get<{ all: string[]; hidden: boolean; icon: string }>(core, `/proxies/${name}`);

test("configuration sheet §17 check 5: include-all, filter with backtick, exclude-type, hidden, icon", async () => {
  await using core = await start(
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

test("configuration sheet §17 check 6: RULE-SET in all behaviours and formats, nested logic, commas in DOMAIN-REGEX", async () => {
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
  await using core = await start(
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

test("downloads: at the start, when asked, kept over a reload; failures answer 503 and change nothing", async () => {
  await using site = await openSite();
  site.pages.set("/rules", { body: "+.one.example\n" });
  site.pages.set("/nodes", {
    body: Buffer.from("socks5://127.0.0.1:1#node-a\nhttp://u:p@127.0.0.1:2#node-b\n").toString("base64"),
    headers: { "subscription-userinfo": "upload=1; download=2; total=30; expire=4000000000", etag: '"1"' },
  });
  const config = `
global-ua: test-agent
rule-providers:
  r: {type: http, behavior: domain, format: text, url: "${site.url}/rules", path: lists/r.txt, interval: 86400}
proxy-providers:
  p: {type: http, url: "${site.url}/nodes", path: lists/p, interval: 86400}
proxy-groups:
  - {name: G, type: select, use: [p]}
rules:
  - RULE-SET,r,REJECT
  - MATCH,DIRECT
`;
  await using core = await start(config);
  await until("rules are there", async () => (await chainOf(core, "a.one.example")) === "REJECT");
  await until("nodes are there", async () => (await groupOf(core, "G")).all.join() === "node-a,node-b");
  assert.ok(
    site.asked.every((line) => line.endsWith(" test-agent")),
    site.asked.join(),
  );
  const provider = await get<{ subscriptionInfo: unknown; vehicleType: string }>(
    core,
    "/providers/proxies/p",
  );
  assert.deepEqual(provider.subscriptionInfo, { Upload: 1, Download: 2, Total: 30, Expire: 4_000_000_000 });

  site.pages.set("/rules", { body: "+.two.example\n" });
  assert.equal((await api(core, "/providers/rules/r", { method: "PUT" })).status, 204);
  assert.equal(await chainOf(core, "a.one.example"), "DIRECT");
  assert.equal(await chainOf(core, "a.two.example"), "REJECT");

  site.pages.delete("/rules");
  site.pages.set("/nodes", { body: "<html>log in</html>" });
  for (const path of ["/providers/rules/r", "/providers/proxies/p"]) {
    const failed = await api(core, path, { method: "PUT" });
    assert.equal(failed.status, 503);
    assert.match(((await failed.json()) as { message: string }).message, /404|HTML/);
  }
  const asked = site.asked.length;
  assert.equal((await api(core, "/configs?force=true", { method: "PUT", body: "{}" })).status, 204);
  assert.equal(await chainOf(core, "a.two.example"), "REJECT");
  assert.deepEqual((await groupOf(core, "G")).all, ["node-a", "node-b"]);
  assert.equal(site.asked.length, asked, "what did not change is not asked for");
  assert.equal(readFileSync(join(core.home, "lists/r.txt"), "utf8"), "+.two.example\n");
});

test("a watched file is used when it changes, and kept in use when it breaks", async () => {
  await using core = await start(
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
  writeFileSync(join(core.home, "n.yaml"), "proxies:\n- {name: y, type: direct}\n- {name: z, type: vless}\n");
  await core.shows(/proxy provider n: proxy 1 error/);
  assert.deepEqual((await groupOf(core, "G")).all, ["x"]);
});

test(
  "geodata: missing at the start, downloaded when asked, refused when it is something else",
  { skip: noRealData },
  async () => {
    await using site = await openSite();
    site.pages.set("/site", { body: readFileSync(join(REAL_DATA, "geodat/geosite-lite.dat")) });
    site.pages.set("/mmdb", { body: readFileSync(join(REAL_DATA, "geodat/geoip-lite.metadb")) });
    await using core = await start(`
geox-url: {geosite: "${site.url}/site", mmdb: "${site.url}/mmdb", asn: "${site.url}/asn"}
rules:
  - GEOSITE,google,REJECT
  - GEOIP,cloudflare,REJECT-DROP
  - MATCH,DIRECT
`);
    await core.shows(/GeoSite\.dat is not in .*geox-url\.geosite/);
    assert.equal(await chainOf(core, "www.google.com"), "DIRECT");
    const updated = await api(core, "/configs/geo", { method: "POST", body: "{}" });
    assert.equal(updated.status, 204, await updated.text());
    assert.equal(await chainOf(core, "www.google.com"), "REJECT");
    assert.equal(await chainOf(core, "1.1.1.1"), "REJECT-DROP");
    const { rules } = await get<{ rules: { type: string; size: number }[] }>(core, "/rules");
    assert.deepEqual(
      rules.map(({ size }) => size),
      [690, 0, -1],
    );
    site.pages.set("/site", { body: "<html>" });
    assert.equal((await api(core, "/configs/geo", { method: "POST", body: "{}" })).status, 500);
    assert.equal(await chainOf(core, "www.google.com"), "REJECT");
    assert.ok(existsSync(join(core.home, "GeoSite.dat")) && existsSync(join(core.home, "geoip.metadb")));
  },
);

test("-t reads everything and asks nobody", async () => {
  await using site = await openSite();
  const home = mkdtempSync(join(tmpdir(), "weir-check-"));
  try {
    writeFileSync(
      join(home, "config.yaml"),
      `rule-providers: {r: {type: http, behavior: domain, url: "${site.url}/r"}}\nproxy-providers: {p: {type: http, url: "${site.url}/p"}}\nrules: ["RULE-SET,r,DIRECT", "GEOSITE,cn,DIRECT"]\n`,
    );
    const said = execFileSync(join(root, "bin/weir"), ["-d", home, "-t"], { encoding: "utf8" });
    assert.match(said, /test is successful/);
    assert.deepEqual(site.asked, []);
  } finally {
    rmSync(home, { recursive: true });
  }
});

test("a provider that would dial through itself is refused", async () => {
  await using core = await start("mode: direct\n");
  core.write(`${HEAD}
proxy-providers:
  p: {type: inline, payload: [{name: n, type: socks5, server: 127.0.0.1, port: 1}], override: {dialer-proxy: G}}
proxy-groups:
  - {name: G, type: select, use: [p]}
`);
  const answer = await api(core, "/configs?force=true", { method: "PUT", body: "{}" });
  assert.notEqual(answer.status, 204);
  assert.match(await answer.text(), /leads back to the provider itself/);
});

/** 500 nodes, 30 groups, 2,000 rules and 10 rule sets, as large as profiles get. */
function wholeProfile(home: string): string {
  const rows = <T>(count: number, make: (at: number) => T) =>
    Array.from({ length: count }, (_, at) => make(at));
  const lists = [
    "geosite/cn.mrs",
    "geosite/geolocation-!cn.mrs",
    "geosite/apple.yaml",
    "geosite/google.list",
    "geosite/category-ads-all.classical.yaml",
    "geoip/cn.mrs",
    "geoip/google.yaml",
    "geoip/cloudflare.list",
    "geosite/youtube.mrs",
    "geosite/private.yaml",
  ];
  const FORMATS: Readonly<Record<string, string>> = { mrs: "mrs", yaml: "yaml", list: "text" };
  const providers = lists.map((file, at) => {
    copyFileSync(join(REAL_DATA, file), join(home, `list-${at}`));
    const behavior = file.includes("classical")
      ? "classical"
      : file.startsWith("geoip")
        ? "ipcidr"
        : "domain";
    return `  set${at}: {type: file, behavior: ${behavior}, format: ${FORMATS[file.split(".").at(-1) as string]}, path: list-${at}}`;
  });
  return `${HEAD}
proxies:
${rows(500, (at) => `  - {name: node ${at}, type: ${["trojan", "vless", "ss"][at % 3]}, server: s${at}.example, port: 443, ${["password: p", "uuid: b831381d-6324-4d53-ad4f-8cda48b30811, tls: true", "cipher: aes-128-gcm, password: p"][at % 3]}}`).join("\n")}
proxy-groups:
${rows(30, (at) => `  - {name: group ${at}, type: ${["select", "url-test", "fallback"][at % 3]}, proxies: [${rows(50, (n) => `node ${(at * 16 + n) % 500}`).join(", ")}]}`).join("\n")}
rule-providers:
${providers.join("\n")}
rules:
${rows(1989, (at) => `  - ${["DOMAIN-SUFFIX", "DOMAIN", "DOMAIN-KEYWORD"][at % 3]},d${at}.example,group ${at % 30}`).join("\n")}
${rows(10, (at) => `  - RULE-SET,set${at},group ${at}${at >= 5 && at <= 7 ? ",no-resolve" : ""}`).join("\n")}
  - MATCH,DIRECT
`;
}

test(
  "a profile of 500 nodes, 30 groups, 2,000 rules and 10 rule sets starts in time",
  { skip: noRealData },
  async (t) => {
    const home = mkdtempSync(join(tmpdir(), "weir-whole-"));
    try {
      writeFileSync(join(home, "config.yaml"), wholeProfile(home));
      const startedMs = performance.now();
      const core = await startCore("", { args: ["-d", home] });
      await using _core = core;
      const tookMs = performance.now() - startedMs;
      t.diagnostic(`started in ${(tookMs / 1000).toFixed(2)} s`);
      assert.match(core.output(), /2000 rules, 500 proxies/);
      assert.ok(tookMs < 15_000, `${tookMs} ms: the aim is 3 s on an idle machine`);
      assert.equal((await chainOf(core, "www.baidu.com"))[0], "g");
    } finally {
      rmSync(home, { recursive: true });
    }
  },
);
