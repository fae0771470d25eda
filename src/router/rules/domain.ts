import { UnusableError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { RuleType } from "#core/rule.ts";
import { normalizeDomain } from "#lib/domain-pattern.ts";
import { EXACT, SUFFIX } from "#lib/domain-table.ts";
import { openCondition } from "#router/tables/open-condition.ts";

/** DOMAIN,www.example.org matches that name and no other. */
export const domain: RuleType = {
  type: "DOMAIN",
  apiType: "Domain",
  allowsOptions: false,
  parse(payload) {
    const name = nameOf(payload, "www.example.org");
    const matcher = openCondition({ is: "name", name, covers: EXACT });
    return { matcher, payload: payload.trim().toLowerCase() };
  },
};

/** DOMAIN-SUFFIX,example.org matches example.org and every name below it. */
export const domainSuffix: RuleType = {
  type: "DOMAIN-SUFFIX",
  apiType: "DomainSuffix",
  allowsOptions: false,
  parse(payload) {
    const name = nameOf(payload.replace(/^\+?\./, ""), "example.org");
    const matcher = openCondition({ is: "name", name, covers: SUFFIX });
    return { matcher, payload: payload.trim().toLowerCase() };
  },
};

function nameOf(payload: string, example: string): string {
  const name = normalizeDomain(payload.trim());
  if (name === null)
    throw new UnusableError(`${show(payload)} is no domain name: write something like ${example}`);
  return name;
}
