import assert from "node:assert/strict";
import { test } from "node:test";
import { routing, session } from "../../test/support/routing.ts";
import { toDestination } from "#net/ip.ts";
import { explain, parseQuestion, renderExplanation } from "./explain.ts";

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
      "  the condition (DomainSuffix,test) holds: sub-rule inner",
      "  inner rule 0 Domain b.test → NEVER: no (host a.test)",
      "  sub-rule inner does not decide",
      "  the next rule needs the address: 192.0.2.1",
      "  rule 4 IPCIDR 10.0.0.0/8 → PRIVATE: no (address 192.0.2.1)",
      "IPCIDR 192.0.2.0/24 → DOCS matches: DOCS",
    ].join("\n"),
  );
  assert.ok(
    router.views().every(({ hitCount, missCount }) => hitCount === 0 && missCount === 0),
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

test("questions as people type them", () => {
  const rows: [string, unknown][] = [
    ["Example.org", { host: "example.org", ip: null, port: 443 }],
    ["example.org:80", { host: "example.org", ip: null, port: 80 }],
    ["1.2.3.4:53", { host: null, ip: "1.2.3.4", port: 53 }],
    ["[2001:db8::1]:53", { host: null, ip: "2001:db8::1", port: 53 }],
    ["2001:db8::1", { host: null, ip: "2001:db8::1", port: 443 }],
    ["", null],
    ["a:b:c", null],
    ["[nonsense]:1", null],
    ["a.com:70000", null],
  ];
  for (const [text, expected] of rows) assert.deepEqual(parseQuestion(text), expected, text);
});
