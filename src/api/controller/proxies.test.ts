import assert from "node:assert/strict";
import { test } from "node:test";
import { apiApp } from "../../../test/support/api-app.ts";
import { NODE_NAMES } from "../../../test/support/memory-proxies.ts";

const encoded = (name: string) => encodeURIComponent(name);

test("controller-api.md §15.3 names with separators, percent signs and emoji round-trip through every route", async () => {
  const { app, control } = await apiApp();
  for (const name of NODE_NAMES) {
    const chosen = await app.inject({
      method: "PUT",
      url: "/proxies/Proxy",
      payload: JSON.stringify({ name }),
    });
    assert.equal(chosen.statusCode, 204, name);
    assert.equal(control.groups.get("Proxy")?.now, name);
    const one = await app.inject(`/proxies/${encoded(name)}`);
    assert.equal(one.json<{ name: string }>().name, name);
    const delay = await app.inject(`/proxies/${encoded(name)}/delay?timeout=5000&url=https://a.example/`);
    assert.deepEqual(delay.json(), { delay: 87 }, name);
    const provider = `/providers/proxies/${encoded("remote/1")}/${encoded(name)}`;
    assert.equal((await app.inject(provider)).json<{ name: string }>().name, name);
    assert.deepEqual((await app.inject(`${provider}/healthcheck?timeout=5000`)).json(), { delay: 87 });
  }
});

test("controller-api.md §15.3 a name in the path is decoded once: %252F is the name %2F", async () => {
  const { app } = await apiApp();
  assert.equal((await app.inject("/proxies/%252F")).json<{ name: string }>().name, "%2F");
  assert.equal((await app.inject("/proxies/a%2Fb")).json<{ name: string }>().name, "a/b");
  assert.equal((await app.inject("/proxies/a/b")).statusCode, 404);
  assert.equal((await app.inject("/proxies/%2F")).statusCode, 404);
});

test("GET /proxies lists proxies and groups, each with a list of samples and a map of URLs", async () => {
  const { app } = await apiApp();
  for (const url of ["/proxies", "/proxies/"]) {
    const { proxies } = (await app.inject(url)).json<{ proxies: Record<string, Record<string, unknown>> }>();
    assert.ok(
      Object.values(proxies).every(
        (proxy) => Array.isArray(proxy.history) && typeof proxy.extra === "object",
      ),
    );
    const { GLOBAL, Auto, Balance, DIRECT } = proxies;
    assert.equal(GLOBAL?.now, "DIRECT");
    assert.deepEqual([Auto?.fixed, Auto?.expectedStatus], ["", "*"]);
    assert.ok(!("now" in (Balance as object)) && !("fixed" in (GLOBAL as object)));
    assert.ok("id" in (DIRECT as object) && !("all" in (DIRECT as object)));
  }
});

test("controller-api.md §15.4 selection: a text/plain body works, an unknown member is 400, leaves and load-balancing cannot choose", async () => {
  const { app, control } = await apiApp();
  const put = async (group: string, payload: string, type = "text/plain;charset=UTF-8") =>
    await app.inject({
      method: "PUT",
      url: `/proxies/${encoded(group)}`,
      payload,
      headers: { "content-type": type },
    });
  assert.equal((await put("Proxy", '{"name":"Node 2"}')).statusCode, 204);
  assert.equal(control.groups.get("Proxy")?.now, "Node 2");
  assert.equal((await put("Proxy", '{"NAME":"Node 1"}', "no media type at all")).statusCode, 204);
  const unknown = await put("Proxy", '{"name":"Unknown"}');
  assert.equal(unknown.statusCode, 400);
  assert.match(unknown.json<{ message: string }>().message, /^Selector update error:/);
  assert.deepEqual((await put("Node 1", '{"name":"x"}')).json(), {
    message: "Must be a Selector",
    error: "Must be a Selector",
  });
  assert.equal((await put("Balance", '{"name":"Node 1"}')).statusCode, 400);
  assert.equal((await put("Unknown", "not even JSON")).statusCode, 404);
  for (const bad of ["", "{", '{"name":5}', '{"name":null}', "[]", "null"]) {
    const answer = await put("Proxy", bad);
    assert.deepEqual(
      [answer.statusCode, answer.json<{ message: string }>().message],
      [400, "Body invalid"],
      bad,
    );
  }
});

test("controller-api.md §15.4 choosing in a url-test group pins, DELETE and a group test take the pin away", async () => {
  const { app, control } = await apiApp();
  const pin = () => app.inject({ method: "PUT", url: "/proxies/Auto", payload: { name: "Node 2" } });
  await pin();
  assert.equal((await app.inject("/proxies/Auto")).json<{ fixed: string }>().fixed, "Node 2");
  assert.equal((await app.inject({ method: "DELETE", url: "/proxies/Auto" })).statusCode, 204);
  assert.equal(control.groups.get("Auto")?.fixed, "");
  for (const url of ["/group/Auto/delay?timeout=5000&url=x", "/group/Auto/delay?timeout=never"]) {
    await pin();
    await app.inject(url);
    assert.equal(control.groups.get("Auto")?.fixed, "", url);
  }
  for (const name of ["Proxy", "Balance", "DIRECT"]) {
    assert.equal((await app.inject({ method: "DELETE", url: `/proxies/${name}` })).statusCode, 400, name);
  }
  assert.equal((await app.inject({ method: "DELETE", url: "/proxies/Unknown" })).statusCode, 404);
});

test("controller-api.md §15.5 delay tests: 400 for a bad time-out, 504 when it runs out, 503 when refused, 404 for an unknown name", async () => {
  const { app } = await apiApp();
  const expected: readonly (readonly [string, number])[] = [
    ["/proxies/Node%201/delay?timeout=5000&url=http://a.example&expected=200/204,300-399", 200],
    ["/proxies/Node%201/delay?timeout=40000&url=x", 400],
    ["/proxies/Node%201/delay?url=x", 400],
    ["/proxies/Node%201/delay?timeout=1.5", 400],
    ["/proxies/Node%201/delay?timeout=5000&expected=abc", 400],
    ["/proxies/Node%201/delay?timeout=0", 504],
    ["/proxies/slow/delay?timeout=5000", 504],
    ["/proxies/closed/delay?timeout=5000", 503],
    ["/proxies/Unknown/delay", 404],
    ["/group/Auto/delay?timeout=40000", 200],
    ["/group/Auto/delay?timeout=3000000000", 400],
    ["/group/Broken/delay?timeout=5000", 504],
    ["/group/Node%201/delay?timeout=5000", 404],
    ["/group/Unknown/delay?timeout=5000", 404],
    ["/providers/proxies/remote%2F1/Unknown/healthcheck", 404],
    ["/providers/proxies/remote%2F1/slow/healthcheck?timeout=5000", 504],
  ];
  for (const [url, status] of expected) assert.equal((await app.inject(url)).statusCode, status, url);
  assert.deepEqual((await app.inject("/proxies/slow/delay?timeout=9")).json(), {
    message: "Timeout",
    error: "Timeout",
  });
  const refused = (await app.inject("/proxies/closed/delay?timeout=9")).json<{ message: string }>();
  assert.equal(refused.message, "An error occurred in the delay test");
  const group = (await app.inject("/group/Auto/delay?timeout=9")).json<Record<string, number>>();
  assert.deepEqual(group, { "Node 1": 87, "Node 2": 87 });
});

test("a delay test leaves its mark in history and extra", async () => {
  const { app } = await apiApp();
  await app.inject("/proxies/slow/delay?timeout=9&url=https://a.example/");
  const slow = (await app.inject("/proxies/slow")).json<{
    alive: boolean;
    history: { delay: number; time: string }[];
    extra: Record<string, { alive: boolean }>;
  }>();
  assert.deepEqual(
    [slow.alive, slow.history[0]?.delay, slow.extra["https://a.example/"]?.alive],
    [false, 0, false],
  );
  assert.match(slow.history[0]?.time ?? "", /^\d{4}-\d\d-\d\dT.*Z$/);
});

test("providers: a list each, 503 with the reason, 404 for unknown names", async () => {
  const { app, control } = await apiApp();
  const { providers } = (await app.inject("/providers/proxies/")).json<{
    providers: Record<string, never>;
  }>();
  const remote = providers["remote/1"] as unknown as Record<string, unknown>;
  assert.deepEqual(remote.subscriptionInfo, { Upload: 1, Download: 2, Total: 3, Expire: 1_900_000_000 });
  assert.ok(Array.isArray(remote.proxies));
  assert.equal((providers.default as unknown as { updatedAt: string }).updatedAt, "0001-01-01T00:00:00Z");
  const update = () => app.inject({ method: "PUT", url: "/providers/proxies/remote%2F1" });
  assert.equal((await update()).statusCode, 204);
  assert.deepEqual(control.updatedProviders, ["remote/1"]);
  const failed = await update();
  assert.equal(failed.statusCode, 503);
  assert.match(failed.json<{ error: string }>().error, /404/);
  assert.equal((await app.inject("/providers/proxies/remote%2F1/healthcheck")).statusCode, 204);
  assert.equal(control.nodes.get("slow")?.alive, false);
  assert.equal((await app.inject("/providers/proxies/unknown/healthcheck")).statusCode, 404);
  const rules = (await app.inject("/providers/rules")).json<{ providers: { ads: { payload: string[] } } }>();
  assert.deepEqual(rules.providers.ads.payload, ["ads.example"]);
  assert.equal((await app.inject({ method: "PUT", url: "/providers/rules/ads" })).statusCode, 503);
  assert.equal((await app.inject({ method: "PUT", url: "/providers/rules/x" })).statusCode, 404);
});
