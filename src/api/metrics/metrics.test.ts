import assert from "node:assert/strict";
import { test } from "node:test";
import { apiApp } from "../../../test/support/api-app.ts";

test("counters name declared routes only, whatever a client asks for", async () => {
  const { app, control } = await apiApp();
  control.connect("a.example");
  for (const url of ["/version", "/proxies/a%2Fb", "/proxies/Unknown", "/made/up", "/made/up/2"])
    await app.inject(url);
  const answer = await app.inject("/metrics");
  assert.match(String(answer.headers["content-type"]), /^text\/plain; version=0\.0\.4/);
  const lines = new Set(answer.body.split("\n"));
  for (const line of [
    'weir_api_requests_total{method="GET",route="/version",status="200"} 1',
    'weir_api_requests_total{method="GET",route="/proxies/:name",status="404"} 1',
    'weir_api_requests_total{method="other",route="other",status="404"} 2',
    "weir_connections 1",
    "weir_upload_bytes_total 1000",
  ]) {
    assert.ok(lines.has(line), `${line} in\n${answer.body}`);
  }
  assert.doesNotMatch(answer.body, /Unknown|made/);
});

test("a total that grows is shown as it is, and two Controllers count apart", async () => {
  const [one, two] = [await apiApp(), await apiApp()];
  await one.app.inject("/version");
  one.control.uploadTotal += 5;
  await one.app.inject("/metrics");
  assert.match((await one.app.inject("/metrics")).body, /^weir_upload_bytes_total 1005$/m);
  assert.doesNotMatch((await two.app.inject("/metrics")).body, /version/);
});

test("connections are counted by listener and by node, and are gone with their end", async () => {
  const { app, control } = await apiApp();
  control.connect("a.example");
  control.connect("b.example");
  const one = (await app.inject("/metrics")).body;
  assert.match(one, /^weir_listener_connections\{listener="[^"]+",network="tcp"\} 2$/m);
  assert.match(one, /^weir_outbound_connections\{outbound="[^"]*"\} 2$/m);
  control.live.clear();
  assert.doesNotMatch((await app.inject("/metrics")).body, /^weir_(?:listener|outbound)_connections\{/m);
});

test("a client that asks for OpenMetrics gets it, also while another one asks for the older form", async () => {
  const { app } = await apiApp();
  const accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
  const [open, plain] = await Promise.all([
    app.inject({ url: "/metrics", headers: { accept } }),
    app.inject("/metrics"),
  ]);
  assert.match(String(open.headers["content-type"]), /^application\/openmetrics-text; version=1\.0\.0/);
  assert.match(open.body, /# EOF\n?$/);
  assert.match(String(plain.headers["content-type"]), /^text\/plain; version=0\.0\.4/);
  assert.doesNotMatch(plain.body, /# EOF/);
});

test("the process is measured from the first scrape on", async () => {
  const { app } = await apiApp();
  await app.inject("/metrics");
  const { body } = await app.inject("/metrics");
  assert.match(body, /^weir_memory_bytes\{kind="heap_used"\} \d+$/m);
  assert.match(body, /^weir_api_request_duration_seconds_count\{route="\/metrics"\} 1$/m);
  assert.match(body, /^process_start_time_seconds 1\d{9}/m);
});
