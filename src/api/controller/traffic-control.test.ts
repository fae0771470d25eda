import assert from "node:assert/strict";
import { test } from "node:test";
import type { PolicyStatusView } from "#core/governance.ts";
import { apiApp } from "../../../test/support/api-app.ts";
import type { MemoryGovernance } from "../../../test/support/memory-governance.ts";

const BASE = "/api/svc/traffic-control";
const NOW = 1_785_312_000;

const none = { upload: 0, download: 0, connections: 0, exceeded: 0 };

const phone: PolicyStatusView = {
  id: "phone",
  name: "Phone",
  dimension: "device",
  enabled: true,
  uploadBps: 0,
  downloadBps: 20_000_000,
  quota: {
    totalBytes: 0,
    uploadBytes: 0,
    downloadBytes: 0,
    windowSeconds: 0,
    overageUploadBps: 0,
    overageDownloadBps: 0,
    portal: true,
  },
  device: {
    mac: "aa:bb:cc:dd:ee:ff",
    sourceCidrs: ["192.168.1.20/32"],
    hostName: "phone",
    addresses: ["192.168.1.20"],
  },
  rule: null,
  target: null,
  counters: { ...none, upload: 5 },
  rolling: { upload: 0, download: 0 },
  activeConnections: 2,
  overQuota: false,
  freeAt: 0,
  lastUpdated: 1,
  lastReset: 2,
  generation: 1,
};

async function governedApp() {
  const { app, control } = await apiApp();
  return { app, governance: control.governance as MemoryGovernance };
}

test("the status has the names of the specification; zeros are left out", async () => {
  const { app, governance } = await governedApp();
  governance.shown = [
    phone,
    { ...phone, id: "q", quota: { ...phone.quota, totalBytes: 7, windowSeconds: 2_592_000 }, device: null },
  ];
  const { policies } = (await app.inject(`${BASE}/status`)).json();
  const counters = { upload_bytes: 5, download_bytes: 0, connections: 0, exceeded_events: 0 };
  assert.deepEqual(policies[0], {
    policy: {
      id: "phone",
      name: "Phone",
      kind: "device",
      enabled: true,
      download_bps: 20_000_000,
      quota: { portal: true },
      mac: "aa:bb:cc:dd:ee:ff",
      source_cidrs: ["192.168.1.20/32"],
      host_name: "phone",
      addresses: ["192.168.1.20"],
      rule: {},
      target: {},
    },
    counters,
    rolling: { ...counters, upload_bytes: 0 },
    active_connections: 2,
    over_quota: false,
    last_updated: 1,
    last_reset: 2,
    generation: 1,
  });
  assert.equal(policies[1].policy.quota.window, 2_592_000_000_000_000);
});

test("queries: what is wrong is found in the order of the specification; defaults", async () => {
  const { app, governance } = await governedApp();
  const messageOf = async (query: string) => {
    const answer = await app.inject(`${BASE}/reports?${query}`);
    return [answer.statusCode, answer.json().message?.split(":")[0]];
  };
  assert.deepEqual(await messageOf("from=x&to=y&granularity=week"), [400, "from"]);
  assert.deepEqual(await messageOf("to=1.5&granularity=week"), [400, "to"]);
  assert.equal(
    (await messageOf("from=5&to=5&granularity=week"))[1],
    "from must be before to, by at most 400 days",
  );
  assert.equal((await messageOf(`from=0&to=${401 * 86_400}`))[0], 400);
  assert.deepEqual(await messageOf("key=unknown&granularity=week"), [400, "granularity"]);
  assert.equal(governance.asked.length, 0);
  const answer = (await app.inject(`${BASE}/reports?granularity=DAY`)).json();
  assert.deepEqual(answer, {
    key: "global:global",
    granularity: "DAY",
    from: NOW - 86_400,
    to: NOW,
    buckets: [],
  });
  const empty = (await app.inject(`${BASE}/reports?key=&granularity=&from=&to=`)).json();
  assert.deepEqual([empty.key, empty.granularity, empty.to], ["global:global", "hour", NOW]);
  await app.inject(`${BASE}/reports/summary?to=100000`);
  assert.equal(governance.asked.at(-1)?.from, 100_000 - 86_400);
});

test("summary and CSV", async () => {
  const { app, governance } = await governedApp();
  governance.buckets = [1, 2].map((start) => ({ start, counters: { ...none, upload: start, exceeded: 1 } }));
  const { summary } = (await app.inject(`${BASE}/reports/summary?key=a`)).json();
  assert.deepEqual(summary, { upload_bytes: 3, download_bytes: 0, connections: 0, exceeded_events: 2 });
  const csv = await app.inject(`${BASE}/reports/export.csv?key=${encodeURIComponent('a,"b"')}`);
  assert.equal(csv.headers["content-type"], "text/csv; charset=utf-8");
  assert.equal(csv.headers["content-disposition"], 'attachment; filename="svc-traffic-report.csv"');
  assert.equal(
    csv.body,
    'key,granularity,start,upload_bytes,download_bytes,connections,exceeded_events\n"a,""b""",hour,1,1,0,0,1\n"a,""b""",hour,2,2,0,0,1\n',
  );
});

test("NDJSON, and a month as a page that loads nothing", async () => {
  const { app, governance } = await governedApp();
  governance.buckets = [{ start: 1, counters: { ...none, upload: 1 } }];
  const lines = await app.inject(`${BASE}/reports/export.ndjson?key=a&granularity=day`);
  assert.match(String(lines.headers["content-type"]), /^application\/x-ndjson/);
  assert.deepEqual(JSON.parse(lines.body), {
    key: "a",
    granularity: "day",
    start: 1,
    upload_bytes: 1,
    download_bytes: 0,
    connections: 0,
    exceeded_events: 0,
  });
  const page = await app.inject(`${BASE}/reports/month.html?month=2026-10`);
  assert.match(page.body, /^<!doctype html>.*Traffic in January 1970/);
  assert.match(String(page.headers["content-security-policy"]), /default-src 'none'/);
  await app.inject(`${BASE}/reports/month.html`);
  assert.deepEqual(governance.months, ["2026-10", null]);
});

test("a reset answers with the whole status", async () => {
  const { app, governance } = await governedApp();
  governance.shown = [phone, { ...phone, id: "tv" }];
  const answer = await app.inject({ method: "POST", url: `${BASE}/policies/tv/reset` });
  assert.deepEqual(answer.json(), (await app.inject(`${BASE}/status`)).json());
  assert.equal(answer.json().policies.length, 2);
});

test("PUT: the envelope, a missing revision, an unknown policy's reset", async () => {
  const { app, governance } = await governedApp();
  const put = (payload: unknown, query = "") =>
    app.inject({ method: "PUT", url: `${BASE}/policies${query}`, payload: JSON.stringify(payload) });
  assert.equal((await put({ config: {} })).statusCode, 409, "a missing revision is 0");
  assert.equal((await put({ revision: "1", config: {} })).statusCode, 400);
  assert.equal((await put({ revision: 1, config: { Enabled: null } }, "?persist=true")).statusCode, 200);
  assert.deepEqual(governance.changes, [{ revision: 1, config: { Enabled: null }, persist: true }]);
  const answer = await app.inject({ method: "POST", url: `${BASE}/policies/a%2Fb/reset` });
  assert.equal(answer.statusCode, 404);
  assert.deepEqual(Object.keys(answer.json()).sort(), ["error", "message"]);
});
