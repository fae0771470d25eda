/** Rules whose database is not there: said by the list of rules and by the explanation. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { api, get, openSite, startWith } from "../support/provider-core.ts";

test("rules whose database is missing say so, each by itself", async () => {
  await using site = await openSite();
  await using core = await startWith(`
geox-url: {geosite: "${site.url}/site", mmdb: "${site.url}/mmdb", asn: "${site.url}/asn"}
rules:
  - GEOSITE,google,REJECT
  - GEOIP,CN,REJECT
  - GEOIP,LAN,REJECT
  - SRC-IP-ASN,13335,REJECT
  - DOMAIN,a.example,REJECT
  - MATCH,DIRECT
`);
  const { rules } = await get<{ rules: { unavailable?: string }[] }>(core, "/rules");
  assert.deepEqual(
    rules.map(({ unavailable }) => unavailable),
    ["database missing", "database missing", undefined, "database missing", undefined, undefined],
  );
  const { steps } = await get<{ steps: { index: number; note: string }[] }>(
    core,
    "/rules/explain?destination=192.0.2.1",
  );
  const notes = new Map(steps.map(({ index, note }) => [index, note]));
  assert.equal(notes.get(0), "database missing");
  assert.equal(notes.get(1), "database missing");
  assert.equal(notes.get(2), "address 192.0.2.1");
  assert.equal(notes.get(3), "database missing");
});

test("a file that is no database is told apart from one that is missing", async () => {
  await using site = await openSite();
  await using core = await startWith(`
geox-url: {mmdb: "${site.url}/mmdb"}
rules: ["GEOIP,CN,REJECT", "MATCH,DIRECT"]
`);
  writeFileSync(join(core.home, "geoip.metadb"), "no database");
  assert.equal((await api(core, "/configs?force=true", { method: "PUT", body: "{}" })).status, 204);
  const { rules } = await get<{ rules: { unavailable?: string }[] }>(core, "/rules");
  assert.equal(rules[0]?.unavailable, "database cannot be read");
});
