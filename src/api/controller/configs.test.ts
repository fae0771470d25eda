import assert from "node:assert/strict";
import { test } from "node:test";
import { apiApp, type ApiApp } from "../../../test/support/api-app.ts";

const patch = ({ app }: ApiApp, payload: unknown) =>
  app.inject({ method: "PATCH", url: "/configs", payload: JSON.stringify(payload) });
const put = ({ app }: ApiApp, payload: unknown, query = "") =>
  app.inject({ method: "PUT", url: `/configs${query}`, payload: JSON.stringify(payload) });

test("GET /configs shows every field under its file name and no secret", async () => {
  const { app } = await apiApp();
  const view = (await app.inject("/configs")).json<Record<string, unknown>>();
  assert.equal(view["mixed-port"], 7890);
  assert.deepEqual(view["lan-allowed-ips"], ["0.0.0.0/0", "::/0"]);
  assert.deepEqual(Object.keys(view["geox-url"] as object), ["geo-ip", "mmdb", "asn", "geo-site"]);
  assert.equal(view.authentication, null);
  assert.ok(!("secret" in view) && !("dns" in view));
  const expected = [
    "port socks-port redir-port tproxy-port mixed-port tun tuic-server ss-config vmess-config authentication",
    "skip-auth-prefixes lan-allowed-ips lan-disallowed-ips allow-lan bind-address inbound-tfo inbound-mptcp mode",
    "unified-delay log-level ipv6 interface-name routing-mark geox-url geo-auto-update geo-update-interval",
    "geodata-mode geodata-loader geosite-matcher tcp-concurrent find-process-mode sniffing global-ua etag-support",
    "keep-alive-idle keep-alive-interval disable-keep-alive",
  ].flatMap((line) => line.split(" "));
  assert.deepEqual(Object.keys(view).sort(), expected.sort());
});

test("the tun object shows the fixed keys always and the others when they say something", async () => {
  const { app } = await apiApp();
  const { tun } = (await app.inject("/configs/")).json<{ tun: Record<string, unknown> }>();
  assert.equal(tun["file-descriptor"], 0);
  assert.equal(tun["kernel-direct-max-entries"], 4096);
  assert.ok(!("gso" in tun) && !("route-address" in tun) && !("more" in tun));
});

test("controller-api.md §15.6 PATCH: unknown keys are ignored, a bad value is 400 and changes nothing, tun keeps what was not sent", async () => {
  const api = await apiApp();
  const { control } = api;
  const good: readonly unknown[] = [
    { dns: {} },
    { "unified-delay": "perhaps" },
    { mode: "Global", "LOG-LEVEL": "warning", ipv6: null },
    { tun: { stack: "mixed" } },
    { tun: { "kernel-direct-max-entries": 0, nonsense: true } },
    { tun: { "on-exit": "closed" } },
    { "tcptun-config": 1, "ss-config": "x" },
    { "skip-auth-prefixes": ["10.0.0.0/8", "::1"] },
    {},
  ];
  for (const body of good) assert.equal((await patch(api, body)).statusCode, 204, JSON.stringify(body));
  const { settings } = control;
  assert.deepEqual([settings.mode, settings.logLevel, settings.ipv6], ["global", "warning", true]);
  assert.deepEqual([settings.tun.enable, settings.tun.stack], [true, "Mixed"]);
  assert.equal(settings.tun.more["kernel-direct-max-entries"], 4096);
  assert.equal(settings.tun.more["on-exit"], "closed");
  assert.ok(!("nonsense" in settings.tun.more));
  const bad: readonly unknown[] = [
    { mode: "x" },
    { mode: "direct", port: 65_536 },
    { mode: "direct", "mixed-port": "7890" },
    { mode: "direct", "allow-lan": 1 },
    { mode: "direct", tun: { "kernel-direct-max-entries": 65_537 } },
    { mode: "direct", tun: { mtu: 1.5 } },
    { mode: "direct", tun: { mtu: -1 } },
    { mode: "direct", tun: { "on-exit": "shut" } },
    { mode: "direct", tun: [] },
    { mode: "direct", "lan-allowed-ips": ["10.0.0.0/33"] },
    { mode: "direct", "find-process-mode": "maybe" },
    [],
    "rule",
  ];
  for (const body of bad) assert.equal((await patch(api, body)).statusCode, 400, JSON.stringify(body));
  assert.equal(control.settings, settings);
});

test("controller-api.md §15.6 a number that is too large is refused with the name of its key", async () => {
  const answer = await patch(await apiApp(), { tun: { "kernel-direct-max-entries": 65_537 } });
  const { message, error } = answer.json<{ message: string; error: string }>();
  assert.match(message, /kernel-direct-max-entries/);
  assert.equal(error, message);
});

test("controller-api.md §15.7 PUT: bad text is 400 and the old rules stay, a relative path and one outside are 400", async () => {
  const api = await apiApp();
  const before = api.control.ruleList;
  const bad = await put(api, { path: "", payload: "nonsense" });
  assert.equal(bad.statusCode, 400);
  assert.match(bad.json<{ message: string }>().message, /nonsense/);
  assert.equal((await put(api, { path: "config.yaml" })).statusCode, 400);
  assert.equal((await put(api, { path: "/etc/passwd" })).statusCode, 400);
  assert.equal((await put(api, { payload: 5 })).statusCode, 400);
  assert.equal(api.control.ruleList, before);
  assert.equal((await put(api, { payload: "MATCH,,Proxy" }, "?force=true")).statusCode, 204);
  assert.equal(api.control.ruleList.length, 1);
  assert.equal((await put(api, {}, "?reload=true")).statusCode, 204);
  assert.equal((await api.app.inject({ method: "PUT", url: "/configs" })).statusCode, 400);
});

test("POST /configs/geo and its alias: 204, or 500 with the reason", async () => {
  const { app, control } = await apiApp();
  for (const url of ["/configs/geo", "/upgrade/geo"]) {
    control.geoFails = false;
    assert.equal((await app.inject({ method: "POST", url })).statusCode, 204);
    control.geoFails = true;
    const failed = await app.inject({ method: "POST", url });
    assert.equal(failed.statusCode, 500);
    assert.equal(failed.json<{ message: string }>().message, "an update is already running");
  }
});
