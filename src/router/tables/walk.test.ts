/** Compiled lists decide and count exactly as trying one rule after the other does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PASS, PASS_RULE, routing, rulesOf, session, TCP } from "../../../test/support/routing.ts";
import { runs } from "../../../test/support/runs.ts";

const label = fc.constantFrom("a", "b", "c", "org");
const host = fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join("."));
const octet = fc.constantFrom(0, 1, 2, 128);
const v4 = fc.tuple(octet, octet, octet, octet).map((parts) => parts.join("."));
const condition = fc.oneof(
  { weight: 5, arbitrary: host.map((name) => `DOMAIN,${name}`) },
  { weight: 5, arbitrary: host.map((name) => `DOMAIN-SUFFIX,${name}`) },
  {
    weight: 6,
    arbitrary: fc.tuple(v4, fc.integer({ min: 0, max: 32 })).map(([ip, bits]) => `IP-CIDR,${ip}/${bits}`),
  },
  { weight: 1, arbitrary: fc.constantFrom("NETWORK,udp", "DST-PORT,1-500", "SRC-IP-CIDR,10.0.0.0/8") },
);
const target = fc.constantFrom("A", "B", "TCP-ONLY", "PASS");
const option = fc.constantFrom("", "", "", ",no-resolve");
const line = fc
  .tuple(condition, target, option)
  .map(([text, to, words]) => `${text},${to}${text.startsWith("IP-CIDR") ? words : ""}`);
/** Runs of one kind, so that tables are made. */
const lines = fc
  .array(fc.oneof(line, line), { maxLength: 60 })
  .map((all) => all.toSorted((x, y) => x.charCodeAt(0) - y.charCodeAt(0)));

interface Outcome {
  readonly index: number;
  readonly looked: boolean;
}

/** The meaning of a list, in the plainest words. */
function naive(
  rules: ReturnType<typeof rulesOf>,
  name: string,
  udp: boolean,
  off: readonly boolean[],
  hits: number[],
  misses: number[],
): Outcome {
  let address: string | null | undefined = /^[\d.]+$/.test(name) ? name : undefined;
  let looked = false;
  for (const [at, rule] of rules.entries()) {
    if (off[at]) continue;
    const facts = () =>
      ({
        host: /^[\d.]+$/.test(name) ? null : name,
        network: udp ? "udp" : "tcp",
        port: 443,
        sourceIp: "192.168.1.2",
        ...(address === undefined ? {} : { ip: address }),
      }) as never;
    let verdict = rule.matcher.match(facts());
    if (verdict === undefined) {
      address = null; // the names of this test have none
      looked = true;
      verdict = rule.matcher.match(facts());
    }
    const count = verdict === true ? hits : misses;
    count[at] = (count[at] ?? 0) + 1;
    if (verdict === true && rule.target !== PASS.name && !(udp && rule.target === TCP.name))
      return { index: at, looked };
  }
  return { index: -1, looked };
}

test("property: compiled equals naive, in decisions, look-ups and counters", async () => {
  const question = fc.tuple(fc.oneof(host, v4), fc.boolean());
  await fc.assert(
    fc.asyncProperty(
      lines,
      fc.array(question, { maxLength: 8 }),
      fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }),
      fc.boolean(),
      async (texts, questions, off, disabling) => {
        const asked: string[] = [];
        const lookup = async (name: string) => {
          asked.push(name);
          throw new Error("none");
        };
        const router = routing({ rules: texts, outbounds: [PASS_RULE], env: { resolver: { lookup } } });
        const rules = rulesOf(texts);
        const switched = disabling ? off : off.map(() => false);
        if (disabling) router.disable(new Map(off.map((value, at) => [at, value])));
        const hits: number[] = [];
        const misses: number[] = [];
        for (const [name, udp] of questions) {
          asked.length = 0;
          const expected = naive(rules, name, udp, switched, hits, misses);
          const decision = await router.route(
            session(name, { network: udp ? "udp" : "tcp" }),
            new AbortController().signal,
          );
          assert.equal(decision.rule?.index ?? -1, expected.index);
          assert.equal(asked.length > 0, expected.looked);
        }
        for (const [at, view] of [...router.views()].entries()) {
          assert.equal(view.hitCount, hits[at] ?? 0, `hits of ${at}`);
          assert.equal(view.missCount, misses[at] ?? 0, `misses of ${at}`);
        }
      },
    ),
    { numRuns: runs(300) },
  );
});
