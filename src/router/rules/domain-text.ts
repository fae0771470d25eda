/** Rules over the host's text: keyword, glob, regular expression. */
import { domainToASCII } from "node:url";
import { UnusableError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { RuleType } from "#core/rule.ts";
import { compileGlob } from "#router/glob.ts";
import { compileLinear } from "#router/linear-pattern.ts";

function hostRule(
  type: string,
  apiType: string,
  compile: (payload: string) => { test: (host: string) => boolean; payload: string },
): RuleType {
  return {
    type,
    apiType,
    allowsOptions: false,
    parse(text) {
      const { test, payload } = compile(text);
      const matcher = {
        reads: ["host"] as const,
        match: ({ host }: { readonly host?: string | null }) =>
          host === undefined ? undefined : host !== null && test(host),
      };
      return { matcher, payload };
    },
  };
}

/** DOMAIN-KEYWORD,google matches every name that contains the text. */
export const domainKeyword = hostRule("DOMAIN-KEYWORD", "DomainKeyword", (text) => {
  const keyword = toLower(text, "google");
  return { test: (host) => host.includes(keyword), payload: keyword };
});

/** DOMAIN-WILDCARD,*.example.??: `*` is any text (dots too), `?` one character. */
export const domainWildcard = hostRule("DOMAIN-WILDCARD", "DomainWildcard", (text) => {
  const glob = toLower(text, "*.example.org");
  return { test: compileGlob(glob), payload: glob };
});

/** DOMAIN-REGEX,^ad[0-9]+\. matches names in which the expression is found; case does not matter. */
export const domainRegex = hostRule("DOMAIN-REGEX", "DomainRegex", (text) => {
  const pattern = compileLinear(text.trim());
  return { test: (host) => pattern.test(host), payload: text.trim() };
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
