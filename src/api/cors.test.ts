import assert from "node:assert/strict";
import { test } from "node:test";
import { apiApp } from "../../test/support/api-app.ts";

const RESTRICTED = { allowOrigins: ["https://a.example", "https://*.b.example"], allowPrivateNetwork: true };

test("a restricted list: a match is echoed, another origin is served without the headers", async () => {
  const { app } = await apiApp({ cors: RESTRICTED, secret: "s3cret" });
  const allowed = async (origin: string) => {
    const headers = { origin, authorization: "Bearer s3cret" };
    const answer = await app.inject({ url: "/version", headers });
    assert.equal(answer.statusCode, 200);
    return answer.headers["access-control-allow-origin"];
  };
  assert.equal(await allowed("https://a.example"), "https://a.example");
  assert.equal(await allowed("https://x.b.example"), "https://x.b.example");
  for (const origin of [
    "http://a.example",
    "https://a.example:1",
    "https://b.example",
    "null",
    "https://.b.exampl",
  ]) {
    assert.equal(await allowed(origin), undefined, origin);
  }
});

test("a preflight asks for one method and some headers; what is not granted is not named", async () => {
  const { app } = await apiApp({ cors: RESTRICTED });
  const preflight = async (headers: Record<string, string>) => {
    const all = { origin: "https://a.example", "access-control-request-method": "PUT", ...headers };
    const answer = await app.inject({ method: "OPTIONS", url: "/configs", headers: all });
    assert.equal(answer.statusCode, 200);
    return answer.headers;
  };
  const good = await preflight({ "access-control-request-headers": "Content-Type, authorization" });
  assert.equal(good["access-control-allow-headers"], "content-type, authorization");
  assert.equal(good["access-control-max-age"], "300");
  assert.equal(good["access-control-allow-private-network"], undefined);
  assert.equal(good["access-control-allow-credentials"], undefined);
  const inward = await preflight({ "access-control-request-private-network": "true" });
  assert.equal(inward["access-control-allow-private-network"], "true");
  for (const asked of [
    { "access-control-request-method": "TRACE" },
    { "access-control-request-headers": "x-evil" },
    { origin: "https://evil.example" },
  ]) {
    assert.equal((await preflight(asked))["access-control-allow-origin"], undefined, JSON.stringify(asked));
  }
});

test("OPTIONS that is no preflight is an ordinary wrong method", async () => {
  const { app } = await apiApp();
  assert.equal((await app.inject({ method: "OPTIONS", url: "/version" })).statusCode, 405);
  const headers = { origin: "https://a.example" };
  assert.equal((await app.inject({ method: "OPTIONS", url: "/version", headers })).statusCode, 405);
});
