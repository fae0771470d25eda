/** What providers and databases load from elsewhere: when, what is kept, and what a failure leaves. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { api, chainOf, get, groupOf, openSite, startWith } from "../support/provider-core.ts";
import { noRealData, REAL_DATA } from "../support/real-data.ts";
import { until } from "../support/until.ts";
import { always, openScripted } from "./dns-kit.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

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
  await using core = await startWith(config);
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

test(
  "geodata: missing at the start, downloaded when asked, refused when it is something else",
  { skip: noRealData },
  async () => {
    await using site = await openSite();
    await using core = await startWith(`
geox-url: {geosite: "${site.url}/site", mmdb: "${site.url}/mmdb", asn: "${site.url}/asn"}
rules:
  - GEOSITE,google,REJECT
  - GEOIP,cloudflare,REJECT-DROP
  - MATCH,DIRECT
`);
    await core.shows(/GeoSite\.dat is not in .*It is fetched from geox-url\.geosite/);
    await core.shows(/level=warning msg="geodata: .*the old stays in use/); // there was nothing to fetch yet
    assert.equal(await chainOf(core, "www.google.com"), "DIRECT");
    site.pages.set("/site", { body: readFileSync(join(REAL_DATA, "geodat/geosite-lite.dat")) });
    site.pages.set("/mmdb", { body: readFileSync(join(REAL_DATA, "geodat/geoip-lite.metadb")) });
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

test("a missing database is fetched after the first start, unasked", { skip: noRealData }, async () => {
  await using site = await openSite();
  site.pages.set("/site", { body: readFileSync(join(REAL_DATA, "geodat/geosite-lite.dat")) });
  await using core = await startWith(`
geox-url: {geosite: "${site.url}/site"}
rules: ["GEOSITE,google,REJECT", "MATCH,DIRECT"]
`);
  await core.shows(/GeoSite\.dat: updated, \d+ bytes/);
  assert.equal(await chainOf(core, "www.google.com"), "REJECT");
});

test(
  "a database that only DNS asks for is fetched, and counts from then on",
  { skip: noRealData },
  async () => {
    await using site = await openSite();
    for (const [page, file] of [
      ["/site", "geosite-lite.dat"],
      ["/mmdb", "geoip-lite.metadb"],
    ] as const)
      site.pages.set(page, { body: readFileSync(join(REAL_DATA, "geodat", file)) });
    await using abroad = await openScripted(always("8.8.8.8"));
    await using fallback = await openScripted(always("192.0.2.2"));
    await using google = await openScripted(always("192.0.2.3"));
    await using core = await startWith(`
geox-url: {geosite: "${site.url}/site", mmdb: "${site.url}/mmdb"}
dns:
  enable: true
  nameserver: [127.0.0.1:${abroad.port}]
  fallback: [127.0.0.1:${fallback.port}]
  nameserver-policy: {"geosite:google": 127.0.0.1:${google.port}}
`);
    await core.shows(/GeoSite\.dat: updated, \d+ bytes/);
    await core.shows(/geoip\.metadb: updated, \d+ bytes/);
    const addressOf = async (name: string) =>
      (await get<{ Answer: readonly { data: string }[] }>(core, `/dns/query?name=${name}`)).Answer[0]?.data;
    assert.equal(await addressOf("www.google.com"), "192.0.2.3");
    assert.equal(await addressOf("a.example"), "192.0.2.2", "an address outside of China is not believed");
  },
);

test("a database that only a downloaded rule list asks for is fetched", { skip: noRealData }, async () => {
  await using site = await openSite();
  site.pages.set("/site", { body: readFileSync(join(REAL_DATA, "geodat/geosite-lite.dat")) });
  site.pages.set("/rules", { body: "GEOSITE,google\n" });
  await using core = await startWith(`
geox-url: {geosite: "${site.url}/site"}
rule-providers: {r: {type: http, behavior: classical, format: text, url: "${site.url}/rules"}}
rules: ["RULE-SET,r,REJECT", "MATCH,DIRECT"]
`);
  await core.shows(/GeoSite\.dat: updated, \d+ bytes/);
  assert.equal(await chainOf(core, "www.google.com"), "REJECT");
});

test("-t reads everything and downloads nothing", async () => {
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
