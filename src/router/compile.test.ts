/** Tables of a list before are taken where they are over the same rules, and decide as new ones do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Facts, Rule } from "#core/rule.ts";
import { atOnce } from "#lib/steps.ts";
import { ip, rulesOf } from "../../test/support/routing.ts";
import { runs } from "../../test/support/runs.ts";
import { compileInSteps, type RuleList } from "./compile.ts";

const names = (count: number, suffix: string): string[] =>
  Array.from({ length: count }, (_, at) => `DOMAIN,n${at}.${suffix},A`);
const after = (rules: readonly Rule[], before: RuleList): RuleList =>
  atOnce(compileInSteps("rules", rules, before));

test("a run of the same rules keeps its table, a run that changed, grew or shrank does not", () => {
  const [one, two] = [rulesOf(names(8, "one")), rulesOf(names(8, "two"))];
  const [port, other] = rulesOf(["DST-PORT,1,A", "DST-PORT,2,A"]) as [Rule, Rule];
  const before = atOnce(compileInSteps("rules", [...one, port, ...two]));
  const same = after([...one, other, ...two], before);
  assert.equal(same.steps[0]?.segment, before.steps[0]?.segment);
  assert.equal(same.steps[2]?.segment, before.steps[2]?.segment);
  const more = after([...one, ...two], before);
  assert.deepEqual(
    more.steps.map(({ first, last }) => [first, last]),
    [[0, 15]],
  );
  assert.notEqual(more.steps[0]?.segment, before.steps[0]?.segment);
  const fewer = after([...one.slice(1), other, ...two], before);
  assert.deepEqual([fewer.steps.length, fewer.steps[0]?.last], [3, 6]);
  assert.notEqual(fewer.steps[0]?.segment, before.steps[0]?.segment);
});

const line = fc.oneof(
  fc.constantFrom("a", "b", "c.a").map((name) => `DOMAIN,${name},A`),
  fc.constantFrom("a", "b").map((name) => `DOMAIN-SUFFIX,${name},A`),
  fc.constantFrom("1.0.0.0/8", "1.1.0.0/16").map((network) => `IP-CIDR,${network},A,no-resolve`),
  fc.constant("DST-PORT,1,A"),
);
const list = fc.array(line, { maxLength: 40 }).map((lines) => lines.toSorted());

test("whatever changes, the steps are those of a list that is compiled anew", () => {
  fc.assert(
    fc.property(list, list, fc.integer({ min: 0, max: 40 }), (first, second, kept) => {
      const old = rulesOf(first);
      const fresh = [...old.slice(0, kept), ...rulesOf(second)];
      const before = atOnce(compileInSteps("rules", old));
      const [got, wanted] = [after(fresh, before), atOnce(compileInSteps("rules", fresh))];
      const shape = ({ steps }: RuleList) =>
        steps.map((step) => [step.first, step.last, step.segment === null]);
      assert.deepEqual(shape(got), shape(wanted));
      for (const host of ["a", "c.a", "x.b", "d"])
        for (const at of got.steps.keys()) {
          const facts: Facts = { host, ip: ip("1.1.2.3") };
          const found = (all: RuleList) => all.steps[at]?.segment?.find(facts, -1, null);
          assert.equal(found(got), found(wanted));
        }
    }),
    { numRuns: runs(500) },
  );
});
