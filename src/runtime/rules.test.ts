import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleConfig } from "#config/config.ts";
import { ruleOfLine } from "#config/rules.ts";
import { atOnce } from "#lib/steps.ts";
import { RULE_TYPES } from "#router/rules/index.ts";
import { EMPTY_SCOPE } from "../../test/support/routing.ts";
import { openRules } from "./rules.ts";

const types = new Map(RULE_TYPES.map((type) => [type.type, type]));
const configOf = (rules: readonly string[], nested: readonly string[]) => {
  const read = (lines: readonly string[]): RuleConfig[] => lines.map((line) => ruleOfLine(line, types));
  return { rules: read(rules), subRules: new Map([["nested", read(nested)]]) };
};

test("a rule of names or networks that stands where it stood is the same object; what asks data is made anew", () => {
  const scope = { ...EMPTY_SCOPE, geosite: () => ({ size: 0, reads: [], match: () => false }) };
  const first = configOf(["DOMAIN,a,A", "GEOSITE,cn,A", "IP-CIDR,1.0.0.0/8,A", "DOMAIN,b,A"], ["DOMAIN,c,A"]);
  const before = atOnce(openRules(first, scope, null));
  const second = configOf(
    ["DOMAIN,a,A", "GEOSITE,cn,A", "IP-CIDR,1.0.0.0/8,A", "DOMAIN,b,B"],
    ["DOMAIN,c,A"],
  );
  const now = atOnce(openRules(second, scope, { ...before, config: first }));
  assert.deepEqual(
    now.rules.map((rule, at) => rule === before.rules[at]),
    [true, false, true, false],
  );
  assert.equal(now.rules[3]?.target, "B");
  assert.equal(now.subRules.get("nested")?.[0], before.subRules.get("nested")?.[0]);
});
