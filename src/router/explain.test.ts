import assert from "node:assert/strict";
import { test } from "node:test";
import { routing, session } from "../../test/support/routing.ts";
import { toDestination } from "#net/address/ip.ts";
import { explain, renderExplanation } from "./explain.ts";

const signal = new AbortController().signal;

test("an explanation names what decided, and why the rules before did not", async () => {
  const router = routing({
    rules: [
      "DOMAIN,ads.org,REJECT",
      "NETWORK,udp,TCP-ONLY",
      "DST-PORT,443,OFF",
      "SUB-RULE,(DOMAIN-SUFFIX,test),inner",
      "IP-CIDR,10.0.0.0/8,PRIVATE",
      "IP-CIDR,192.0.2.0/24,DOCS",
      "MATCH,LAST",
    ],
    subRules: { inner: ["DOMAIN,b.test,NEVER"] },
  });
  router.disable(new Map([[2, true]]));
  const explanation = await explain(
    router,
    { destination: toDestination("a.test", 443), network: "udp" },
    signal,
  );
  assert.equal(
    renderExplanation(explanation),
    [
      "a.test:443 udp from 127.0.0.1",
      "  rule 0 Domain ads.org → REJECT: no (host a.test)",
      "  rule 1 Network udp → TCP-ONLY: matches, but goes on (TCP-ONLY carries no UDP)",
      "  rule 2 DstPort 443 → OFF: disabled (switched off)",
      "  the condition (DOMAIN-SUFFIX,test) holds: sub-rule inner",
      "  inner rule 0 Domain b.test → NEVER: no (host a.test)",
      "  sub-rule inner does not decide",
      "  the next rule needs the address: 192.0.2.1",
      "  rule 4 IPCIDR 10.0.0.0/8 → PRIVATE: no (address 192.0.2.1)",
      "IPCIDR 192.0.2.0/24 → DOCS matches: DOCS",
    ].join("\n"),
  );
  assert.ok(
    [...router.views()].every(({ hitCount, missCount }) => hitCount === 0 && missCount === 0),
    "nothing is counted",
  );
  assert.equal((await router.route(session("a.test"), signal)).outbound.name, "DOCS");
});

test("a long list is a short text", async () => {
  const suffixes = Array.from({ length: 20_000 }, (_, at) => `DOMAIN-SUFFIX,d${at}.org,A`);
  const keywords = Array.from({ length: 500 }, (_, at) => [
    `DOMAIN-KEYWORD,k${at}k,A`,
    `DST-PORT,${at + 1000},A`,
  ]).flat();
  const router = routing({ rules: [...suffixes, ...keywords] });
  const text = renderExplanation(await explain(router, { destination: toDestination("a.com", 1) }, signal));
  assert.match(text, /rules 0–19999: none of 20,000 DomainSuffix rules matches \(host a\.com\)/);
  assert.match(text, /… 801 more steps without a match/);
  assert.match(text, /no rule decides: DIRECT$/);
  assert.ok(text.split("\n").length < 220);
});

test("rules with different targets are never one entry", async () => {
  const router = routing({
    rules: [
      "DOMAIN,a.org,A",
      "DOMAIN,b.org,A",
      "DOMAIN,c.org,B",
      "DOMAIN,d.org,A",
      ...Array.from({ length: 9 }, (_, at) => `DOMAIN,e${at}.org,C`),
    ],
  });
  const { entries } = await explain(router, { destination: toDestination("x.com", 1) }, signal);
  assert.deepEqual(
    entries.map((entry) => (entry.kind === "note" ? entry.text : [entry.first, entry.last, entry.target])),
    [
      [0, 1, "A"],
      [2, 2, "B"],
      [3, 3, "A"],
      [4, 12, "C"],
    ],
  );
});
