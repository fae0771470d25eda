import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EMPTY_SCOPE, groupOf, ip, named, routing } from "../support/routing.ts";
import type { RuleScope } from "#core/rule.ts";
import { toDestination } from "#net/address/ip.ts";
import type { Metadata, Network } from "#core/session.ts";
import { conditionsInSteps } from "#router/condition-list.ts";
import type { DirectQuestion } from "#router/direct-proof.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import { atOnce } from "#lib/steps.ts";

const MAIN = { ruleList: null, target: null };
const DIRECT = named("DIRECT");
const isDirect = (target: { name: string }) => target.name === "DIRECT" || target.name === "TO-DIRECT";
const ways = [DIRECT, groupOf("TO-DIRECT", DIRECT), groupOf("TO-PROXY", named("PROXY"))];

function ask(
  router: RuleRouter,
  host: string | null,
  address: string,
  inbound: DirectQuestion["inbound"] = MAIN,
) {
  return router.proveDirect({ host, ip: ip(address), inbound }, isDirect);
}

function proven(rules: readonly string[], host: string | null, address = "9.9.9.9"): boolean {
  return ask(routing({ rules, outbounds: ways }), host, address).direct;
}

test("kernel-direct.md §2.4: the classes of rules", () => {
  const last = "MATCH,PROXY";
  assert.equal(proven(["DOMAIN-SUFFIX,a.org,DIRECT", last], "x.a.org"), true);
  assert.equal(proven(["DOMAIN-SUFFIX,a.org,TO-DIRECT", last], "x.a.org"), true, "groups are unwrapped");
  assert.equal(proven(["DOMAIN-SUFFIX,a.org,TO-PROXY", "MATCH,DIRECT"], "x.a.org"), false);
  assert.equal(proven(["DOMAIN,a.org,REJECT", "MATCH,DIRECT"], "a.org"), false);
  assert.equal(proven(["DOMAIN,a.org,PASS", "MATCH,DIRECT"], "a.org"), true);
  assert.equal(proven(["IP-CIDR,9.0.0.0/8,DIRECT,no-resolve", last], null), true);
  assert.equal(proven([], "a.org"), true, "nothing matches: DIRECT");
  assert.equal(proven(["AND,((DOMAIN,a.org),(IP-CIDR,9.0.0.0/8)),DIRECT", last], "a.org"), true);
  assert.equal(proven(["AND,((DOMAIN,a.org),(DST-PORT,443)),PROXY", "MATCH,DIRECT"], "a.org"), false);
  assert.equal(proven(["AND,((DOMAIN,a.org),(DST-PORT,443)),PROXY", "MATCH,DIRECT"], "b.org"), true);
  assert.equal(proven(["DOMAIN,a.org,TCP-ONLY", "MATCH,DIRECT"], "a.org"), false);
});

test("kernel-direct.md §8.3: a process rule to a proxy above a DIRECT domain rule", () => {
  const router = routing({
    rules: ["PROCESS-NAME,curl,PROXY", "DOMAIN,a.org,DIRECT", "MATCH,PROXY"],
    outbounds: ways,
  });
  const { direct, reason } = ask(router, "a.org", "9.9.9.9");
  assert.equal(direct, false);
  assert.match(reason, /^rules\[0\] PROCESS-NAME,curl,PROXY depends on more than the destination/);
  assert.equal(proven(["PROCESS-NAME,curl,DIRECT", "DOMAIN,a.org,DIRECT", "MATCH,PROXY"], "a.org"), true);
});

test("kernel-direct.md §8.4: IN-NAME to DIRECT first, MATCH to a proxy last", () => {
  assert.equal(proven(["IN-NAME,tun,DIRECT", "MATCH,PROXY"], "a.org"), false);
  assert.equal(proven(["IN-NAME,tun,PROXY", "MATCH,DIRECT"], "a.org"), false);
});

test("many source rules of one table", () => {
  const sources = (target: string) =>
    Array.from({ length: 8 }, (_, at) => `SRC-IP-CIDR,10.${at}.0.0/16,${target}`);
  assert.equal(proven([...sources("PROXY"), "MATCH,DIRECT"], "a.org"), false);
  assert.equal(proven([...sources("DIRECT"), "MATCH,DIRECT"], "a.org"), true);
  const router = routing({ rules: [...sources("PROXY"), "MATCH,DIRECT"], outbounds: ways });
  router.disable(new Map(sources("PROXY").map((_, at) => [at, true])));
  assert.equal(ask(router, "a.org", "9.9.9.9").direct, true, "what is switched off cannot lead elsewhere");
});

test("modes, a listener's proxy, a listener's rules", () => {
  const mode = { now: "rule" as "rule" | "global" | "direct" };
  const router = routing({
    rules: ["MATCH,PROXY"],
    subRules: { guest: ["DOMAIN,a.org,DIRECT", "MATCH,PROXY"] },
    outbounds: ways,
    env: { mode: () => mode.now, direct: DIRECT },
  });
  assert.equal(ask(router, "a.org", "9.9.9.9").direct, false);
  assert.equal(ask(router, "a.org", "9.9.9.9", { ruleList: "guest", target: null }).direct, true);
  mode.now = "direct";
  assert.equal(ask(router, "a.org", "9.9.9.9").direct, true);
  assert.equal(ask(router, "a.org", "9.9.9.9", { ruleList: null, target: "PROXY" }).direct, false);
  mode.now = "global";
  assert.equal(ask(router, "a.org", "9.9.9.9").direct, false);
  assert.equal(ask(router, "a.org", "9.9.9.9", { ruleList: null, target: "DIRECT" }).direct, true);
});

test("beyond the specification: mode global follows GLOBAL, as every session does", () => {
  const members = { now: named("PROXY") };
  const global = Object.assign(named("GLOBAL"), { members: [], pick: () => members.now });
  const router = routing({ rules: ["MATCH,PROXY"], env: { mode: () => "global", global } });
  const directNow = () =>
    router.proveDirect({ host: "a.org", ip: ip("9.9.9.9"), inbound: MAIN }, (target) =>
      target === global ? members.now.name === "DIRECT" : target.name === "DIRECT",
    ).direct;
  assert.equal(directNow(), false);
  members.now = DIRECT;
  assert.equal(directNow(), true);
});

test("beyond the specification: a rule set of behavior classical answers as far as the destination answers it", () => {
  const set = (...lines: readonly string[]) => ({
    ...EMPTY_SCOPE,
    ruleSet: () => atOnce(conditionsInSteps(lines, EMPTY_SCOPE, (line) => assert.fail(line))),
  });
  const within = (scope: RuleScope, rules: readonly string[], host = "a.org") =>
    ask(routing({ rules, scope, outbounds: ways }), host, "9.9.9.9").direct;
  const plain = set("DOMAIN,a.org", "IP-CIDR,9.0.0.0/8");
  assert.equal(within(plain, ["RULE-SET,some,DIRECT", "MATCH,PROXY"]), true);
  assert.equal(within(plain, ["RULE-SET,some,PROXY", "MATCH,DIRECT"]), false);
  const mixed = set("DOMAIN,b.org", "SRC-PORT,1000", "PROCESS-NAME,curl");
  assert.equal(within(mixed, ["RULE-SET,some,DIRECT", "MATCH,PROXY"]), false, "depends on the source");
  assert.equal(within(mixed, ["RULE-SET,some,PROXY", "MATCH,DIRECT"]), false, "may lead elsewhere");
  assert.equal(
    within(mixed, ["RULE-SET,some,DIRECT", "MATCH,PROXY"], "b.org"),
    true,
    "one condition is enough",
  );
  const source = ["RULE-SET,some,DIRECT,src", "MATCH,PROXY"];
  assert.equal(within(plain, source), false, "of the source");
});

test("beyond the specification: a list of sub-rules is walked where its condition is known, and taints where it is not", () => {
  const sub = (condition: string, inner: readonly string[], host = "a.org") =>
    ask(
      routing({
        rules: [`SUB-RULE,(${condition}),inner`, "MATCH,DIRECT"],
        subRules: { inner },
        outbounds: ways,
      }),
      host,
      "9.9.9.9",
    ).direct;
  assert.equal(sub("DOMAIN,a.org", ["DOMAIN,a.org,DIRECT", "MATCH,PROXY"]), true);
  assert.equal(sub("DOMAIN,a.org", ["MATCH,PROXY"]), false);
  assert.equal(sub("DOMAIN,a.org", ["MATCH,PROXY"], "b.org"), true, "the list is not entered");
  assert.equal(sub("DOMAIN,a.org", ["DOMAIN,b.org,PROXY"]), true, "nothing in it matches: the rest decides");
  assert.equal(sub("SRC-PORT,1000", ["MATCH,DIRECT"]), false, "may lead anywhere");
  assert.equal(sub("DOMAIN,a.org", ["SRC-PORT,1000,PROXY", "MATCH,DIRECT"]), false, "a taint within");
});

const HOSTS = ["a.org", "www.a.org", "b.net", "www.b.net"];
const ADDRESSES = ["9.9.9.9", "9.1.1.1", "8.8.8.8", "2001:db8::1"];
const leaf = fc.constantFrom(
  "DOMAIN,a.org",
  "DOMAIN-SUFFIX,a.org",
  "DOMAIN-SUFFIX,b.net",
  "DOMAIN-KEYWORD,www",
  "IP-CIDR,9.0.0.0/8",
  "IP-CIDR,8.8.8.8/32",
  "IP-CIDR6,2001:db8::/32",
  "SRC-IP-CIDR,10.0.0.0/8",
  "SRC-PORT,1000",
  "DST-PORT,443",
  "NETWORK,udp",
  "IN-NAME,tun",
  "IN-TYPE,TUN",
  "PROCESS-NAME,curl",
  "UID,1000",
  "DSCP,4",
);
const condition = fc.oneof(
  { weight: 4, arbitrary: leaf },
  fc
    .tuple(fc.constantFrom("AND", "OR"), leaf, leaf)
    .map(([word, left, right]) => `${word},((${left}),(${right}))`),
  leaf.map((inner) => `NOT,((${inner}))`),
);
const target = fc.constantFrom("DIRECT", "TO-DIRECT", "PROXY", "TO-PROXY", "REJECT", "PASS", "TCP-ONLY");
const line = fc.tuple(condition, target).map(([what, where]) => `${what},${where}`);
const inner = fc.array(line, { maxLength: 4 });
const ruleSet = fc.record({
  rules: fc.array(
    fc.oneof(
      { weight: 6, arbitrary: line },
      leaf.map((what) => `SUB-RULE,(${what}),inner`),
    ),
    { maxLength: 10 },
  ),
  inner,
});
const context = fc.record({
  network: fc.constantFrom<Network>("tcp", "udp"),
  source: fc.constantFrom("10.0.0.1", "192.168.1.2"),
  sourcePort: fc.constantFrom(1000, 2000),
  port: fc.constantFrom(443, 80),
  name: fc.constantFrom("tun", "other"),
  type: fc.constantFrom("Tun", "Redir"),
  process: fc.constantFrom(
    { path: "/bin/curl", name: "curl", uid: 1000 },
    { path: null, name: null, uid: 0 },
  ),
  dscp: fc.constantFrom(4, null),
});

test("what is proven holds for every source, port, process, network and inbound: 1,000 rule sets", async () => {
  let proofs = 0;
  const property = fc.asyncProperty(
    ruleSet,
    fc.array(context, { minLength: 6, maxLength: 6 }),
    async (lists, contexts) => {
      let asker = contexts[0] as (typeof contexts)[number];
      const router = routing({
        rules: lists.rules,
        subRules: { inner: lists.inner },
        outbounds: ways,
        env: {
          direct: DIRECT,
          processes: { uid: async () => asker.process.uid, process: async () => asker.process },
        },
      });
      for (const host of HOSTS)
        for (const address of ADDRESSES) {
          if (!ask(router, host, address).direct) continue;
          proofs++;
          for (asker of contexts) {
            const { outbound } = await router.route(
              metadataOf(host, address, asker),
              AbortSignal.timeout(1000),
            );
            assert.equal(outbound.name, "DIRECT", `${host} ${address} ${JSON.stringify(asker)}`);
          }
        }
    },
  );
  await fc.assert(property, { numRuns: 1000 });
  assert.ok(proofs > 500, `only ${proofs} proofs to check`);
});

function metadataOf(
  host: string,
  address: string,
  asker: {
    network: Network;
    source: string;
    sourcePort: number;
    port: number;
    name: string;
    type: string;
    dscp: number | null;
  },
): Metadata {
  return {
    id: "test",
    network: asker.network,
    source: { ip: ip(asker.source), port: asker.sourcePort },
    destination: { ...toDestination(host, asker.port), ip: ip(address) },
    inbound: {
      name: asker.name,
      type: asker.type,
      user: null,
      local: { ip: ip("10.0.0.254"), port: 7 },
      ruleList: null,
      target: null,
    },
    dscp: asker.dscp,
    acceptedAtMs: 0,
  };
}
