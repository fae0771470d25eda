/** Rules over the host's text: keyword, glob, regular expression. */
import { domainToASCII } from "node:url";
import { UnusableError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { Matcher, RuleType } from "#core/rule.ts";
import { compileLinear } from "#router/linear-pattern.ts";
import { hostPattern } from "#router/tables/host-pattern.ts";
import { openCondition } from "#router/tables/open-condition.ts";

function hostRule(
  type: string,
  apiType: string,
  compile: (payload: string) => { matcher: Matcher; payload: string },
): RuleType {
  return { type, apiType, allowsOptions: false, parse: compile };
}

/** DOMAIN-KEYWORD,google matches every name that contains the text. */
export const domainKeyword = hostRule("DOMAIN-KEYWORD", "DomainKeyword", (payload) => {
  const text = toLower(payload, "google");
  return { matcher: openCondition({ is: "host", test: "contains", text }), payload: text };
});

/** DOMAIN-WILDCARD,*.example.??: `*` is any text (dots too), `?` one character. */
export const domainWildcard = hostRule("DOMAIN-WILDCARD", "DomainWildcard", (payload) => {
  const text = toLower(payload, "*.example.org");
  return { matcher: openCondition({ is: "host", test: "glob", text }), payload: text };
});

/** DOMAIN-REGEX,^ad[0-9]+\. matches names in which the expression is found; case does not matter. */
export const domainRegex = hostRule("DOMAIN-REGEX", "DomainRegex", (payload) => {
  const source = payload.trim();
  return { matcher: hostPattern(compileLinear(source)), payload: source };
});

function toLower(text: string, example: string): string {
  const plain = text.trim();
  // IDN goes to ASCII where it is a whole name; a keyword may be half a label, which stays as it is then.
  const lower = /^[\x21-\x7e]*$/.test(plain)
    ? plain.toLowerCase()
    : domainToASCII(plain) || plain.toLowerCase();
  if (lower === "" || /\s/.test(lower))
    throw new UnusableError(`${show(text)} matches no name: write something like ${example}`);
  return lower;
}
