import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndedConnection } from "#core/live.ts";
import type { Decision } from "#core/router.ts";
import { EndedRing, MOST_ENDED, seenOf } from "./ended-ring.ts";

const row = (uploadBytes: number) => ({ uploadBytes }) as EndedConnection;

test("the newest comes first; beyond the bound the oldest goes", () => {
  const ring = new EndedRing();
  const kept = () => [...ring].map(({ uploadBytes }) => uploadBytes);
  assert.deepEqual(kept(), []);
  for (const at of [1, 2, 3]) ring.push(row(at));
  assert.deepEqual(kept(), [3, 2, 1]);
  for (let at = 4; at <= MOST_ENDED + 2; at++) ring.push(row(at));
  assert.equal(kept().length, MOST_ENDED);
  assert.deepEqual([kept()[0], kept().at(-1)], [MOST_ENDED + 2, 3]);
});

test("of a decision nothing is kept that holds a configuration: no node, no group, no rule", () => {
  const destination = { host: "a.example", ip: null, port: 443 };
  const rule = { apiType: "Domain", payload: "a.example", target: "Proxy", matcher: {} };
  const decision = {
    outbound: { name: "node" },
    groups: [{ name: "Proxy" }],
    chain: ["Proxy", "node"],
    destination,
    dnsMode: "normal",
    rule,
    entered: { ...rule, apiType: "SubRules" },
    unruled: false,
    facts: { ip: null, sourceIp: "10.0.0.1" },
  } as unknown as Decision;
  assert.deepEqual(seenOf(decision), {
    chain: ["Proxy", "node"],
    destination,
    dnsMode: "normal",
    facts: { ip: null },
    rule: { apiType: "SubRules", payload: "a.example" },
  });
  assert.equal(seenOf({ ...decision, entered: undefined, rule: null } as unknown as Decision).rule, null);
});
