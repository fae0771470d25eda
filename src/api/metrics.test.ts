import assert from "node:assert/strict";
import { test } from "node:test";
import { apiApp } from "../../test/support/api-app.ts";

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
