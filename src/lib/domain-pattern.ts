/** Domain names and wildcard patterns as people write them in hosts, policies, filters and rule lists. */
import { domainToASCII } from "node:url";
import { EXACT, SUFFIX, BELOW } from "./domain-table.ts";

export interface DomainPattern {
  /** Lower-case ASCII without the leading `.` or `+.`; may hold `*` labels. */
  readonly name: string;
  /** EXACT, BELOW or SUFFIX of #net/domain-table.ts. */
  readonly covers: number;
  /** Does the pattern contain `*` labels? */
  readonly starred: boolean;
}

const ASCII = /^[\x21-\x7e]+$/;

/** Lower case, IDN to ASCII, without a last dot; null where it is no host name (empty, blanks, longer than 253). */
export function normalizeDomain(text: string): string | null {
  const plain = text.endsWith(".") ? text.slice(0, -1) : text;
  const name = ASCII.test(plain) ? plain.toLowerCase() : domainToASCII(plain);
  return name === "" || name.length > 253 || !ASCII.test(name) || name.split(".").includes("") ? null : name;
}

/**
 * `a.com` exactly; `*.a.com`, `a.*.com` one label; `.a.com` everything below; `+.a.com` the name and everything below;
 * `*` names of one label. Null for anything else (a trailing dot, an empty label, `*` inside a label).
 */
export function parseDomainPattern(text: string): DomainPattern | null {
  if (text.endsWith(".")) return null;
  const covers = text.startsWith("+.") ? SUFFIX : text.startsWith(".") ? BELOW : EXACT;
  const name = normalizeDomain(covers === SUFFIX ? text.slice(2) : covers === BELOW ? text.slice(1) : text);
  if (name === null) return null;
  const starred = name.includes("*");
  if (
    name.includes("+") ||
    (starred && !name.split(".").every((label) => label === "*" || !label.includes("*")))
  )
    return null;
  return { name, covers, starred };
}
