/** Conditions on names as DNS policies, filters, the sniffer and hosts write them. */
import { domainToASCII } from "node:url";
import type { DomainCondition } from "#core/dns-options.ts";
import { Fault, show } from "#core/fields.ts";

/** `a.com`, `*.a.com`, `.a.com`, `+.a.com`, `*`: lower case, IDN as ASCII. Null where it is none of them. */
export function parseDomainPattern(source: string): string | null {
  const lower = source.trim().toLowerCase();
  const anyDepth = /^(\+\.|\.)/.exec(lower)?.[0] ?? "";
  const labels = lower.slice(anyDepth.length).split(".");
  const ascii = labels.map(labelToAscii);
  if (lower.length > 253 || ascii.includes(null)) return null;
  return anyDepth + ascii.join(".");
}

function labelToAscii(label: string): string | null {
  if (label === "*") return label;
  if (label === "" || label.length > 63 || /[\s*+,:/]/.test(label)) return null;
  // oxlint-disable-next-line no-control-regex -- everything outside ASCII is what is asked for
  if (/^[\x00-\x7f]*$/.test(label)) return label;
  const ascii = domainToASCII(label);
  return ascii === "" ? null : ascii;
}

const PREFIXED = /^(geosite|rule-set):([^]*)$/i;

/** A comma-separated list of patterns, `geosite:a,b` or `rule-set:a,b`. */
export function parseDomainConditions(source: string): readonly DomainCondition[] | Fault {
  const [, kind, rest] = PREFIXED.exec(source.trim()) ?? [];
  const items = (rest ?? source).split(",").map((item) => item.trim());
  if (items.includes("")) return new Fault(`expected names between the commas, got ${show(source)}`);
  if (kind?.toLowerCase() === "geosite")
    return items.map((category) => ({ kind: "geosite", category: category.toLowerCase() }));
  if (kind !== undefined) return items.map((name) => ({ kind: "rule-set", name }));
  const conditions: DomainCondition[] = [];
  for (const item of items) {
    const pattern = parseDomainPattern(item);
    if (pattern === null)
      return new Fault(
        `bad domain pattern ${show(item)}: expected a.com, *.a.com, .a.com or +.a.com, without a dot at the end`,
      );
    conditions.push({ kind: "domain", pattern });
  }
  return conditions;
}
