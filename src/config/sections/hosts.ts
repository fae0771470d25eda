/** `hosts`: names with fixed answers. */
import type { HostEntry, HostValue } from "#core/dns-options.ts";
import { Fault, list, mapOf, show, text } from "#core/fields.ts";
import type { Ip } from "#core/session.ts";
import { normalizeDomain, parseDomainPattern } from "#lib/domain-pattern.ts";
import { parseIp, LOOPBACK_V4 } from "#net/address/ip.ts";
import { findCircles } from "#config/circles.ts";
import type { Context } from "#config/context.ts";

export const hosts = mapOf(list(text()));

const LOCALHOST: HostEntry = {
  pattern: "localhost",
  value: { kind: "addresses", addresses: [LOOPBACK_V4] },
};

/** A dot inside, nothing that no name has, and a last label that is no number: 300.1.1.1 is a mistyped address. */
const ALIAS = /^[^*+:/[\]]+\.(?!\d+$)[^.*+:/[\]]+$/;

/** In file order; `localhost` is added where the file does not say otherwise. */
export function readHosts(value: unknown, context: Context): readonly HostEntry[] {
  const entries: HostEntry[] = [];
  for (const [key, written] of context.entries(value, ["hosts"])) {
    const items = context.readStrict(list(text()), written, ["hosts", key]);
    if (items === null) continue;
    const pattern = parseDomainPattern(key) === null ? null : key.toLowerCase();
    const parsed = hostValue(items);
    if (pattern === null)
      context.report.warning(
        ["hosts", key],
        `hosts: ${show(key)} is no domain pattern; it matches nothing`,
        "key",
      );
    else if (parsed instanceof Fault)
      context.report.warning(["hosts", key], `hosts ${show(key)}: ${parsed.message}; the entry is left out`);
    else entries.push({ pattern, value: parsed });
  }
  reportCycles(entries, context);
  return entries.some(({ pattern }) => pattern === "localhost") ? entries : [LOCALHOST, ...entries];
}

function hostValue(items: readonly string[]): HostValue | Fault {
  const [only] = items;
  if (items.length === 1 && only !== undefined && parseIp(only) === null) {
    if (only.toLowerCase() === "lan") return { kind: "lan" };
    const alias = normalizeDomain(only);
    if (alias !== null && ALIAS.test(alias)) return { kind: "alias", name: alias };
    return new Fault(`expected IP addresses, another domain or lan, got ${show(only)}`);
  }
  const addresses: Ip[] = [];
  for (const item of items) {
    const address = parseIp(item);
    if (address === null) return new Fault(`a list holds only IP addresses, got ${show(item)}`);
    addresses.push(address);
  }
  return addresses.length > 0
    ? { kind: "addresses", addresses }
    : new Fault("expected at least one IP address");
}

function reportCycles(entries: readonly HostEntry[], context: Context): void {
  const aliases = new Map<string, string>();
  for (const { pattern, value } of entries) if (value.kind === "alias") aliases.set(pattern, value.name);
  const next = (name: string): readonly string[] => {
    const target = aliases.get(name);
    return target === undefined ? [] : [target];
  };
  for (const circle of findCircles(aliases.keys(), next)) {
    const [first = ""] = circle;
    const way = [...circle, first].join("->");
    context.report.error(["hosts", first], `hosts ${show(first)}: cycle in domain mapping ${way}`);
  }
}
