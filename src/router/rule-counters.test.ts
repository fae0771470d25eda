import assert from "node:assert/strict";
import { test } from "node:test";
import { routing, session } from "../../test/support/routing.ts";

const signal = new AbortController().signal;

test("counters: every rule up to the one that decided is charged, in segments too", async () => {
  const clock = { now: 0 };
  const domains = Array.from({ length: 10 }, (_, at) => `DOMAIN,d${at}.org,${at === 4 ? "PASS" : "X"}`);
  const router = routing({
    rules: ["NETWORK,udp,TCP-ONLY", ...domains, "MATCH,LAST"],
    env: { nowMs: () => clock.now },
  });
  const go = async (host: string, atMs: number, network: "tcp" | "udp" = "tcp") => {
    clock.now = atMs;
    await router.route(session(host, { network }), signal);
  };
  await go("d2.org", 10);
  await go("d9.org", 20);
  await go("d4.org", 30);
  await go("none.org", 40);
  await go("d0.org", 50, "udp");
  const shown = [...router.views()].map(({ hitCount, hitAtMs, missCount, missAtMs }) => [
    hitCount,
    hitAtMs,
    missCount,
    missAtMs,
  ]);
  assert.deepEqual(shown[0], [1, 50, 4, 50]); // matched the last, and was gone on behind: its miss shows that time too
  assert.deepEqual(shown[1], [1, 50, 4, 40]);
  assert.deepEqual(shown[3], [1, 10, 3, 40]);
  assert.deepEqual(shown[5], [1, 30, 2, 40]);
  assert.deepEqual(shown[6], [0, 0, 3, 40]);
  assert.deepEqual(shown[10], [1, 20, 2, 40]);
  assert.deepEqual(shown[11], [2, 40, 0, 0]);
  assert.deepEqual(
    [...router.views()].map(({ hitCount }) => hitCount),
    shown.map(([hits]) => hits),
  );
});

test("disabled rules never match and are not counted; the next equal one takes over", async () => {
  const rules = [
    ...Array.from({ length: 8 }, (_, at) => `DOMAIN-SUFFIX,${at % 2 ? "b" : "a"}.org,T${at}`),
    "MATCH,LAST",
  ];
  const router = routing({ rules });
  assert.equal((await router.route(session("x.a.org"), signal)).outbound.name, "T0");
  router.disable(
    new Map([
      [0, true],
      [2, true],
      [99, true],
      [-1, true],
    ]),
  );
  assert.equal((await router.route(session("x.a.org"), signal)).outbound.name, "T4");
  assert.deepEqual([...router.views()].map(({ disabled }) => disabled).slice(0, 4), [
    true,
    false,
    true,
    false,
  ]);
  assert.deepEqual([...router.views()].map(({ missCount }) => missCount).slice(0, 5), [0, 1, 0, 1, 0]);
  router.disable(new Map(Array.from({ length: 8 }, (_, at) => [at, true])));
  assert.equal((await router.route(session("x.a.org"), signal)).outbound.name, "LAST");
  router.disable(new Map([[0, false]]));
  assert.equal((await router.route(session("x.a.org"), signal)).outbound.name, "T0");
});

test("disabled address rules cause no lookup", async () => {
  const networks = Array.from({ length: 8 }, (_, at) => `IP-CIDR,10.${at}.0.0/16,A`);
  const lookup = () => assert.fail("no rule needs the address");
  const router = routing({ rules: [...networks, "MATCH,LAST"], env: { resolver: { lookup } } });
  router.disable(new Map(networks.map((_, at) => [at, true])));
  assert.equal((await router.route(session("a.org"), signal)).outbound.name, "LAST");
});
