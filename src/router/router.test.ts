import { NO_NEIGHBOURS } from "../../test/support/no-neighbours.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, DialError } from "#core/errors.ts";
import type { ProcessInfo } from "#core/rule.ts";
import { atOnce } from "#lib/steps.ts";
import {
  groupOf,
  ip,
  named,
  PASS,
  PASS_RULE,
  routing,
  rulesOf,
  session,
  TCP,
} from "../../test/support/routing.ts";
import { openRouterInSteps } from "./router.ts";

const signal = new AbortController().signal;

async function way(
  router: ReturnType<typeof routing>,
  ...question: Parameters<typeof session>
): Promise<string> {
  const { outbound, rule } = await router.route(session(...question), signal);
  return rule === null ? outbound.name : `${outbound.name} by ${rule.type},${rule.payload}`;
}

test("configuration.md §17.9: a rule that cannot decide hands on: UDP, PASS, PASS-RULE, SUB-RULE return", async () => {
  const router = routing({
    rules: [
      "DOMAIN-SUFFIX,tcp.org,TCP-ONLY",
      "DOMAIN-SUFFIX,pass.org,PASS",
      "DOMAIN,www.pass.org,PASSING-GROUP",
      "SUB-RULE,(DOMAIN-SUFFIX,sub.org),inner",
      "DOMAIN,x.sub.org,AFTER-SUB",
      "DOMAIN,top.org,PASS-RULE",
      "MATCH,LAST",
    ],
    subRules: {
      inner: [
        "DOMAIN,pass.sub.org,PASSING-GROUP",
        "DOMAIN,line.sub.org,PASS-RULE",
        "DOMAIN,tcp.sub.org,TCP-ONLY",
        "SUB-RULE,(DOMAIN-SUFFIX,deep.sub.org),deep",
        "DOMAIN,in.sub.org,INNER",
        "DOMAIN-SUFFIX,deep.sub.org,INNER",
        "DOMAIN,line.sub.org,NEXT-LINE",
        "DOMAIN,pass.sub.org,NEVER",
        "DOMAIN,tcp.sub.org,INNER",
      ],
      deep: [
        "DOMAIN,a.deep.sub.org,DEEP",
        "DOMAIN,pass.deep.sub.org,PASS",
        "DOMAIN,line.deep.sub.org,LINE-GROUP",
        "DOMAIN,pass.deep.sub.org,NEVER",
      ],
    },
    outbounds: [groupOf("PASSING-GROUP", groupOf("INNER-GROUP", PASS)), groupOf("LINE-GROUP", PASS_RULE)],
  });
  const udp = { network: "udp" } as const;
  assert.equal(await way(router, "a.tcp.org"), "TCP-ONLY by DOMAIN-SUFFIX,tcp.org");
  assert.equal(await way(router, "a.tcp.org", udp), "LAST by MATCH,");
  assert.equal(await way(router, "www.pass.org"), "LAST by MATCH,");
  assert.equal(await way(router, "in.sub.org"), "INNER by DOMAIN,in.sub.org");
  assert.equal(await way(router, "x.sub.org"), "AFTER-SUB by DOMAIN,x.sub.org");
  assert.equal(await way(router, "pass.sub.org"), "LAST by MATCH,");
  assert.equal(await way(router, "line.sub.org"), "NEXT-LINE by DOMAIN,line.sub.org");
  assert.equal(await way(router, "tcp.sub.org"), "TCP-ONLY by DOMAIN,tcp.sub.org");
  assert.equal(await way(router, "tcp.sub.org", udp), "LAST by MATCH,");
  assert.equal(await way(router, "a.deep.sub.org"), "DEEP by DOMAIN,a.deep.sub.org");
  assert.equal(await way(router, "pass.deep.sub.org"), "LAST by MATCH,", "out of both lists");
  assert.equal(await way(router, "line.deep.sub.org"), "INNER by DOMAIN-SUFFIX,deep.sub.org");
  assert.equal(await way(router, "none.deep.sub.org"), "INNER by DOMAIN-SUFFIX,deep.sub.org");
  assert.equal(await way(router, "top.org"), "LAST by MATCH,");
});

test("disable-udp of a group on the way: the rule hands UDP on; without rules UDP is refused", async () => {
  const closed = Object.assign(groupOf("CLOSED", named("NODE")), { disablesUdp: true });
  const outer = groupOf("OUTER", closed);
  const mode = { now: "rule" as "rule" | "global" };
  const router = routing({
    rules: ["DOMAIN,a.org,OUTER", "MATCH,LAST"],
    outbounds: [outer],
    env: { mode: () => mode.now, global: outer },
  });
  const udp = { network: "udp" } as const;
  assert.equal(await way(router, "a.org"), "NODE by DOMAIN,a.org");
  assert.equal(await way(router, "a.org", udp), "LAST by MATCH,");
  mode.now = "global";
  assert.equal(await way(router, "a.org"), "NODE");
  await assert.rejects(way(router, "a.org", udp), { code: "DIAL", message: "CLOSED: disable-udp is set" });
});

test("conditions are looked up for from left to right, and later no-resolve rules know what was found", async () => {
  const asked: string[] = [];
  const routed = (first: string) =>
    routing({
      rules: [first, "IP-CIDR,192.0.2.0/24,KNOWN,no-resolve", "MATCH,LAST"],
      env: {
        resolver: {
          lookup: async (host) => {
            asked.push(host);
            return [{ ip: ip("192.0.2.1"), ttlMs: 1000 }];
          },
        },
      },
    });
  const rows: readonly (readonly [rule: string, target: string])[] = [
    ["AND,((IP-CIDR,10.0.0.0/8),(DOMAIN,b.org)),A", "KNOWN"],
    ["AND,((DOMAIN,b.org),(IP-CIDR,10.0.0.0/8)),A", "LAST"],
    ["AND,((IP-CIDR,10.0.0.0/8,no-resolve),(DOMAIN,b.org)),A", "LAST"],
    ["OR,((IP-CIDR,10.0.0.0/8),(DOMAIN,b.org)),A", "KNOWN"],
    ["OR,((DOMAIN,a.org),(IP-CIDR,10.0.0.0/8)),A", "A"],
    ["NOT,((AND,((DOMAIN,a.org),(IP-CIDR,192.0.2.0/24)))),A", "KNOWN"],
    ["AND,((NOT,((IP-CIDR,192.0.2.0/24))),(DOMAIN,b.org)),A", "KNOWN"],
    ["AND,((DOMAIN,b.org),(OR,((IP-CIDR,10.0.0.0/8),(DST-PORT,443)))),A", "LAST"],
    ["AND,((PROCESS-NAME,curl),(IP-CIDR,10.0.0.0/8)),A", "LAST"],
  ];
  for (const [rule, target] of rows) {
    asked.length = 0;
    assert.equal((await routed(rule).route(session("a.org"), signal)).outbound.name, target, rule);
    assert.equal(asked.length, target === "KNOWN" ? 1 : 0, rule);
  }
});

test("mode, listener target, listener rule list, end of list", async () => {
  const mode = { now: "rule" as "rule" | "global" | "direct" };
  const router = routing({
    rules: ["DOMAIN,a.com,A"],
    subRules: { guest: ["DOMAIN,a.com,GUEST"] },
    env: { mode: () => mode.now },
  });
  assert.equal(await way(router, "a.com"), "A by DOMAIN,a.com");
  assert.equal(await way(router, "b.com"), "DIRECT");
  assert.equal(await way(router, "a.com", { inbound: { ruleList: "guest" } }), "GUEST by DOMAIN,a.com");
  assert.equal(await way(router, "a.com", { inbound: { ruleList: "unknown" } }), "A by DOMAIN,a.com");
  assert.equal(await way(router, "a.com", { inbound: { target: "B" } }), "B");
  await assert.rejects(
    way(router, "a.com", { inbound: { target: "NO-SUCH" } }),
    (error) => error instanceof DialError && /NO-SUCH/.test(error.message),
  );
  mode.now = "global";
  assert.equal(await way(router, "a.com"), "GLOBAL");
  assert.equal(await way(router, "a.com", { inbound: { target: "B" } }), "B");
  mode.now = "direct";
  assert.equal(await way(router, "a.com"), "DIRECT");
});

test("groups are unwrapped into the chain", async () => {
  const router = routing({ rules: ["MATCH,G"], outbounds: [groupOf("G", groupOf("H", named("node")))] });
  const { chain, outbound } = await router.route(session("a.com"), signal);
  assert.deepEqual(chain, ["G", "H", "node"]);
  assert.equal(outbound.name, "node");
});

test("a name is resolved once, and only when a rule needs the address", async () => {
  const asked: string[] = [];
  const lookup = async (host: string) => {
    asked.push(host);
    if (host === "none.org") throw new DialError("resolve", "no such name");
    return [{ ip: ip("10.0.0.1"), ttlMs: 1 }];
  };
  const router = routing({
    rules: [
      "IP-CIDR,10.0.0.0/8,KNOWN,no-resolve",
      "DOMAIN,early.org,EARLY",
      "AND,((DST-PORT,1),(IP-CIDR,10.0.0.0/8)),BOTH",
      "IP-CIDR,11.0.0.0/8,OTHER",
      "IP-CIDR,10.0.0.0/8,PRIVATE",
      "NOT,((GEOIP,LAN)),FOREIGN",
    ],
    env: { resolver: { lookup } },
  });
  assert.equal(await way(router, "early.org"), "EARLY by DOMAIN,early.org");
  assert.equal(await way(router, "10.2.2.2"), "KNOWN by IP-CIDR,10.0.0.0/8");
  assert.deepEqual(asked, []);
  const decision = await router.route(session("late.org"), signal);
  assert.equal(decision.outbound.name, "PRIVATE");
  assert.equal(decision.facts.ip, "10.0.0.1");
  assert.deepEqual(decision.destination, { host: "late.org", ip: null, port: 443 });
  assert.deepEqual(asked, ["late.org"]);
  assert.equal(await way(router, "none.org"), "FOREIGN by NOT,(!(GeoIP,lan))");
  assert.deepEqual(asked, ["late.org", "none.org"]);
});

test("a session that ends during a look-up is no decision", async () => {
  const ending = new AbortController();
  const lookup = async () => {
    ending.abort();
    throw new Error("aborted");
  };
  const router = routing({ rules: ["IP-CIDR,1.0.0.0/8,A"], env: { resolver: { lookup } } });
  await assert.rejects(
    router.route(session("a.com"), ending.signal),
    (error) => error instanceof DialError && error.reason === "aborted",
  );
});

test("processes are looked up as the mode says; UID asks for the owner only", async () => {
  const asked: string[] = [];
  const curl: ProcessInfo = { path: "/usr/bin/curl", name: "curl", uid: 7 };
  const processes = {
    uid: async () => (asked.push("uid"), 7),
    process: async () => (asked.push("process"), curl),
  };
  const uidRule = process.platform === "linux" ? ["UID,7,OWNER"] : [];
  const rules = ["DOMAIN,a.com,A", "PROCESS-NAME,wget,WGET", "DOMAIN,b.com,B", "PROCESS-NAME,curl,CURL"];
  const strict = routing({ rules, env: { processes } });
  assert.equal(await way(strict, "a.com"), "A by DOMAIN,a.com");
  assert.deepEqual(asked.splice(0), []);
  assert.equal(await way(strict, "c.com"), "CURL by PROCESS-NAME,curl");
  assert.deepEqual(asked.splice(0), ["process"]);
  const always = routing({ rules, env: { processes, findProcessMode: "always" } });
  assert.deepEqual((await always.route(session("a.com"), signal)).facts.process, curl);
  assert.deepEqual(asked.splice(0), ["process"]);
  const off = routing({ rules: [...rules, ...uidRule], env: { processes, findProcessMode: "off" } });
  assert.equal(await way(off, "c.com"), "DIRECT");
  if (uidRule.length > 0) await way(routing({ rules: [...uidRule], env: { processes } }), "c.com");
  assert.deepEqual(asked.splice(0), uidRule.length > 0 ? ["uid"] : []);
});

test("preparation: what rules see and where the outbound goes may differ from what the client named", async () => {
  const router = routing({
    rules: ["DOMAIN,sniffed.org,S", "MATCH,M"],
    env: {
      prepare: ({ destination }) => ({
        destination: { host: "mapped.org", ip: null, port: destination.port },
        host: "sniffed.org",
        ip: null,
      }),
    },
  });
  const { outbound, destination, facts } = await router.route(session("198.18.0.5"), signal);
  assert.equal(outbound.name, "S");
  assert.deepEqual(destination, { host: "mapped.org", ip: null, port: 443 });
  assert.equal(facts.ip, null);
  const failing = routing({
    rules: [],
    env: {
      prepare: () => {
        throw new DialError("resolve", "fake DNS record missing");
      },
    },
  });
  await assert.rejects(failing.route(session("198.18.0.5"), signal), /fake DNS record missing/);
});

test("a sub-rule among rules that share a table is entered", async () => {
  const rules = [0, 1, 2, 3, 4, 5].map((at) => `IP-CIDR,10.${at}.0.0/16,A`);
  const sub = "SUB-RULE,(IP-CIDR,9.0.0.0/8),inner";
  const router = routing({
    rules: [...rules, sub, ...rules, sub, "MATCH,LAST"],
    subRules: { inner: ["DST-PORT,443,INNER"] },
  });
  assert.equal(await way(router, "9.9.9.9"), "INNER by DST-PORT,443");
  assert.equal(await way(router, "9.9.9.9", { port: 80 }), "LAST by MATCH,");
  const { entered, rule } = await router.route(session("9.9.9.9"), signal);
  assert.deepEqual([entered?.index, entered?.type, rule?.index], [6, "SUB-RULE", -1]);
  assert.equal((await router.route(session("10.1.2.3"), signal)).entered, undefined);
});

test("targets and lists must exist, circles are named", () => {
  const bad =
    (rules: readonly string[], subRules = {}) =>
    () =>
      routing({ rules, subRules });
  assert.throws(
    bad(["MATCH,NO-SUCH"]),
    (error) => error instanceof ConfigError && /rules\[0\].*"NO-SUCH" not found/.test(error.message),
  );
  assert.throws(bad(["SUB-RULE,(NETWORK,tcp),x"]), /sub-rule "x" not found/);
  const circle = { a: ["SUB-RULE,(NETWORK,tcp),b"], b: ["SUB-RULE,(NETWORK,tcp),a"] };
  assert.throws(bad([], circle), /circular reference a->b->a/);
  assert.throws(bad([], { a: ["SUB-RULE,(NETWORK,tcp),a"] }), /a->a/);
});

test("a matcher that cannot tell although it knows everything says no", async () => {
  const [rule] = rulesOf(["MATCH,A"]);
  assert.ok(rule);
  const router = atOnce(
    openRouterInSteps({
      rules: [{ ...rule, matcher: { reads: ["host"], match: () => undefined } }],
      subRules: new Map(),
      mode: () => "rule",
      outbound: () => TCP,
      global: TCP,
      direct: named("DIRECT"),
      resolver: { lookup: () => assert.fail("not needed") },
      processes: { uid: async () => null, process: async () => null },
      neighbours: NO_NEIGHBOURS,
      findProcessMode: "strict",
      nowMs: () => 0,
    }),
  );
  assert.equal((await router.route(session("a.com"), signal)).outbound.name, "DIRECT");
});
