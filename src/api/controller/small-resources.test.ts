/** Rules, DNS, caches, storage, upkeep and identity. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { apiApp } from "../../../test/support/api-app.ts";

test("identity: a greeting, and a version that makes no dashboard switch dialects", async () => {
  const { app } = await apiApp();
  assert.ok("hello" in (await app.inject("/")).json<object>());
  const { meta, version } = (await app.inject("/version")).json<{ meta: boolean; version: string }>();
  assert.equal(meta, true);
  assert.doesNotMatch(version, /sing-box|honk/);
});

test("rules: file order, epoch for never; disabling needs indexes and booleans, unknown indexes are ignored", async () => {
  const { app, control } = await apiApp();
  const list = async () => (await app.inject("/rules/")).json<{ rules: Record<string, unknown>[] }>().rules;
  const extra = { disabled: false, hitCount: 0, missCount: 0, hitAt: "1970-01-01T00:00:00Z" };
  const [first] = await list();
  assert.deepEqual(first?.extra, { ...extra, missAt: extra.hitAt });
  assert.deepEqual([first?.index, first?.proxy, first?.size], [0, "Proxy", -1]);
  const disable = (payload: string) => app.inject({ method: "PATCH", url: "/rules/disable", payload });
  assert.equal((await disable('{"0":true,"99":true,"-1":true}')).statusCode, 204);
  assert.equal(control.ruleList[0]?.disabled, true);
  for (const bad of ['{"x":true}', '{"0":1}', '{"1.5":true}', "[]", ""]) {
    assert.equal((await disable(bad)).statusCode, 400, bad);
  }
});

test("explain says which rule decided", async () => {
  const { app } = await apiApp();
  const answer = await app.inject("/rules/explain?destination=www.example.com");
  assert.equal(answer.json<{ steps: { verdict: string }[] }>().steps[0]?.verdict, "yes");
  assert.equal((await app.inject("/rules/explain")).statusCode, 400);
});

test("dns: the JSON form of public resolvers; bad types 400; switched off or failing 500 with a text", async () => {
  const { app, control } = await apiApp();
  const ask = async (query: string) => await app.inject(`/dns/query?${query}`);
  assert.deepEqual((await ask("name=example.com&type=A")).json(), {
    Status: 0,
    Question: [{ Name: "example.com.", Qtype: 1, Qclass: 1 }],
    TC: false,
    RD: true,
    RA: true,
    AD: false,
    CD: false,
    Answer: [{ name: "example.com.", type: 1, TTL: 300, data: "203.0.113.9" }],
  });
  assert.ok(!("Answer" in (await ask("name=empty.example")).json<object>()));
  assert.equal(
    (await ask("name=a.example&type=HTTPS")).json<{ Question: { Qtype: number }[] }>().Question[0]?.Qtype,
    65,
  );
  for (const type of ["a", "NOPE", "toString"]) {
    const refused = await ask(`name=a.example&type=${type}`);
    assert.deepEqual(
      [refused.statusCode, refused.json<{ message: string }>().message],
      [400, "invalid query type"],
    );
  }
  assert.equal((await ask("type=A")).statusCode, 400);
  const failed = await ask("name=broken.example");
  assert.deepEqual(
    [failed.statusCode, failed.json<{ message: string }>().message],
    [500, "no upstream answered"],
  );
  control.dnsEnabled = false;
  const off = await ask("name=a.example");
  assert.deepEqual(
    [off.statusCode, off.json<{ message: string }>().message],
    [500, "DNS section is disabled"],
  );
});

test("caches", async () => {
  const { app, control } = await apiApp();
  for (const url of ["/cache/fakeip/flush", "/cache/dns/flush"]) {
    assert.equal((await app.inject({ method: "POST", url })).statusCode, 204);
  }
  assert.deepEqual(control.flushed, ["fake-ip", "dns"]);
});

test("controller-api.md §15.11 storage: null when absent, any JSON comes back as written, invalid 400, large 413", async () => {
  const { app, control } = await apiApp();
  const url = `/storage/${encodeURIComponent("a/b ü")}`;
  const put = async (payload: string | Buffer) => await app.inject({ method: "PUT", url, payload });
  assert.equal((await app.inject(url)).body, "null");
  for (const json of [
    '{"b":1,"a":12345678901234567890.10}',
    "null",
    '"x"',
    " [1,\n2] ",
    "[".repeat(9999) + "]".repeat(9999),
  ]) {
    assert.equal((await put(json)).statusCode, 204);
    assert.equal((await app.inject(url)).body, json);
  }
  assert.deepEqual([...control.stored.keys()], ["a/b ü"]);
  for (const bad of ["", "{", "nope", Buffer.from([0x22, 0xff, 0x22])]) {
    const answer = await put(bad);
    assert.deepEqual([answer.statusCode, answer.json<{ message: string }>().message], [400, "Body invalid"]);
  }
  const large = await put(JSON.stringify("x".repeat(1_048_576)));
  assert.deepEqual(
    [large.statusCode, large.json<{ message: string }>().message],
    [413, "payload exceeds 1MB limit"],
  );
  assert.equal((await put(JSON.stringify("x".repeat(1_048_574)))).statusCode, 204);
  for (let round = 0; round < 2; round++)
    assert.equal((await app.inject({ method: "DELETE", url })).statusCode, 204);
  assert.equal((await app.inject(url)).body, "null");
});

test("restart is answered first and happens afterwards; what cannot be done says why", async () => {
  const { app, control } = await apiApp();
  const answer = await app.inject({ method: "POST", url: "/restart" });
  assert.deepEqual([answer.statusCode, answer.json()], [200, { status: "ok" }]);
  await setImmediate();
  assert.deepEqual(control.restarts, ["restart"]);
  const upgrade = await app.inject({ method: "POST", url: "/upgrade?channel=alpha&force=true" });
  assert.equal(upgrade.statusCode, 500);
  assert.match(upgrade.json<{ message: string }>().message, /^update error:/);
  assert.equal((await app.inject({ method: "POST", url: "/upgrade/ui" })).statusCode, 500);
});
