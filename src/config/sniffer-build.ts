/** What the keys of `sniffer` mean. */
import type { DomainCondition } from "#core/dns-options.ts";
import { show } from "#core/fields.ts";
import { type Range } from "#core/ranges.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { parseCidr, type Cidr } from "#net/address/cidr.ts";
import type { Context } from "./context.ts";
import { readConditions } from "./dns-build.ts";
import type { Path } from "./report.ts";
import type { RuleSetNames } from "./rule-sets.ts";
import { SNIFF_PROTOCOLS, type SnifferKeys, type SniffProtocol } from "./sections/sniffer.ts";

export interface SniffOptions {
  readonly protocol: SniffProtocol;
  readonly ports: readonly Range[];
  readonly overrideDestination: boolean;
}

export type AddressCondition =
  | { readonly kind: "cidr"; readonly cidr: Cidr }
  | { readonly kind: "geoip"; readonly code: string }
  | { readonly kind: "rule-set"; readonly name: string };

export interface SnifferOptions {
  readonly enable: boolean;
  /** Nothing listed: nothing is sniffed. */
  readonly sniff: readonly SniffOptions[];
  readonly forceDnsMapping: boolean;
  readonly parsePureIp: boolean;
  readonly forceDomain: readonly DomainCondition[];
  readonly skipDomain: readonly DomainCondition[];
  readonly skipSrcAddress: readonly AddressCondition[];
  readonly skipDstAddress: readonly AddressCondition[];
}

const DEFAULT_PORTS: Readonly<Record<SniffProtocol, number>> = { HTTP: 80, TLS: 443, QUIC: 443 };

export function buildSniffer(keys: SnifferKeys, context: Context, ruleSets: RuleSetNames): SnifferOptions {
  const domains = (key: string, items: readonly string[]) =>
    items.flatMap((item, at) => readConditions(context, ["sniffer", key, at], item, ruleSets));
  const addresses = (key: string, items: readonly string[]) =>
    items.flatMap((item, at) => readAddress(context, ["sniffer", key, at], item, ruleSets));
  return {
    enable: keys.enable,
    sniff: readSniff(keys, context),
    forceDnsMapping: keys.forceDnsMapping,
    parsePureIp: keys.parsePureIp,
    forceDomain: domains("force-domain", keys.forceDomain),
    skipDomain: domains("skip-domain", keys.skipDomain),
    skipSrcAddress: addresses("skip-src-address", keys.skipSrcAddress),
    skipDstAddress: addresses("skip-dst-address", keys.skipDstAddress),
  };
}

function readSniff(keys: SnifferKeys, context: Context): readonly SniffOptions[] {
  const found: SniffOptions[] = [];
  const add = (path: Path, written: string, ranges: readonly Range[], overrideDestination: boolean) => {
    const protocol = SNIFF_PROTOCOLS.find((name) => name === written.toUpperCase());
    if (protocol === undefined) {
      const known = SNIFF_PROTOCOLS.join(", ");
      context.report.error(
        path,
        `unknown sniffer protocol ${show(written)}: expected one of ${known}${suggestion(written, SNIFF_PROTOCOLS)}`,
        "key",
      );
      return;
    }
    const only = DEFAULT_PORTS[protocol];
    found.push({
      protocol,
      ports: ranges.length > 0 ? ranges : [{ from: only, to: only }],
      overrideDestination,
    });
  };
  for (const [name, { ports, overrideDestination }] of Object.entries(keys.sniff))
    add(["sniffer", "sniff", name], name, ports.flat(), overrideDestination ?? keys.overrideDestination);
  if (found.length === 0)
    for (const [at, name] of keys.sniffing.entries())
      add(["sniffer", "sniffing", at], name, keys.portWhitelist.flat(), keys.overrideDestination);
  return found;
}

function readAddress(
  { report }: Context,
  path: Path,
  item: string,
  ruleSets: RuleSetNames,
): readonly AddressCondition[] {
  const [, kind, rest = ""] = /^(geoip|rule-set):([^]+)$/i.exec(item) ?? [];
  if (kind?.toLowerCase() === "geoip")
    return rest.split(",").map((code) => ({ kind: "geoip", code: code.trim().toLowerCase() }));
  if (kind !== undefined) {
    const names = rest.split(",").map((name) => name.trim());
    for (const name of names) {
      const fault = ruleSets.fault(name, ["ipcidr", "classical"]);
      if (fault !== null) report.error(path, fault);
    }
    return names.map((name) => ({ kind: "rule-set", name }));
  }
  const cidr = parseCidr(item);
  if (cidr !== null) return [{ kind: "cidr", cidr }];
  report.error(path, `expected a CIDR, geoip:code or rule-set:name, got ${show(item)}`);
  return [];
}
