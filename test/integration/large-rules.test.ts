import assert from "node:assert/strict";
import { test } from "node:test";
import { ruleOfLine, typesOf } from "#config/rules.ts";
import { Slices } from "#core/slices.ts";
import { atOnce } from "#lib/steps.ts";
import { compileInSteps } from "#router/compile.ts";
import { conditionsInSteps } from "#router/condition-list.ts";
import { RULE_TYPES } from "#router/rules/index.ts";
import { EMPTY_SCOPE, ip } from "../support/routing.ts";
import { turnsDuring } from "../support/turns.ts";
import { openRules } from "#runtime/rules.ts";

const COUNT = 100_000;
const conditions = Array.from({ length: COUNT }, (_, at) =>
  at < COUNT / 2
    ? `DOMAIN-SUFFIX,host${at}.example`
    : `IP-CIDR,10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}/32`,
);
const types = typesOf({ protocols: [], groupKinds: [], ruleTypes: RULE_TYPES });
const config = {
  rules: conditions.map((line) => ruleOfLine(`${line},DIRECT`, types)),
  subRules: new Map(),
};

test("many rules are opened and compiled in slices, and match as if it had been in one go", async () => {
  const slices = new Slices();
  const [rules, opening] = await turnsDuring(() => slices.run(openRules(config, EMPTY_SCOPE, null)));
  assert.deepEqual(
    rules.rules.map(({ index }) => index),
    [...conditions.keys()],
  );
  const [list, compiling] = await turnsDuring(() => slices.run(compileInSteps("rules", rules.rules)));
  const [once, inOneGo] = await turnsDuring(() => atOnce(compileInSteps("rules", rules.rules)));
  assert.ok(inOneGo < 2 && opening > 2 && compiling > 2, `${opening}, ${compiling} and ${inOneGo} turns`);
  for (const { steps } of [list, once]) {
    const [names, networks] = steps.map(({ segment }) => segment);
    assert.equal(steps.length, 2);
    assert.equal(names?.find({ host: "a.host49999.example" }, -1, null), 49_999);
    assert.equal(names?.find({ host: "host50000.example" }, -1, null), -1);
    assert.equal(networks?.find({ ip: ip("10.0.195.80") }, -1, null), 0);
    assert.equal(networks?.find({ ip: ip("10.1.134.159") }, -1, null), 49_999);
  }
});

test("so is a list of conditions", async () => {
  const steps = conditionsInSteps(conditions, EMPTY_SCOPE, (line) => assert.fail(line));
  const [list, turns] = await turnsDuring(() => new Slices().run(steps));
  assert.ok(turns > 2, `${turns} turns`);
  assert.deepEqual([list.size, list.reads], [COUNT, ["host", "ip"]]);
  assert.equal(list.match({ host: "a.host0.example" }), true);
  assert.equal(list.match({ host: "b.example", ip: ip("10.1.134.159") }), true);
  assert.equal(list.match({ host: "b.example", ip: ip("10.1.134.160") }), false);
});
