/** What of the databases a configuration asks for, so that it can be read before it is asked for. */
import type { Config } from "#config/config.ts";
import type { PolicyOptions } from "#core/dns-options.ts";
import type { GeoKey } from "#geodata/geodata.ts";
import type { Steps } from "#lib/steps.ts";

/** Alone in a rule's line or in a condition of a logic rule. */
const CONDITION = /\b(?:SRC-)?(GEOSITE|GEOIP|IP-ASN)\s*,\s*!?([^,()]+)/gi;

const KINDS: Readonly<Record<string, GeoKey["kind"]>> = {
  GEOSITE: "geosite",
  GEOIP: "geoip",
  "IP-ASN": "asn",
};

/** Not all: what classical rule lists and the sniffer name is read when they are. Each once. */
export function* wantedGeodata({ rules, subRules, dns }: Config): Steps<readonly GeoKey[]> {
  const wanted = new Map<string, GeoKey>();
  const add = (kind: GeoKey["kind"], key: string): void => void wanted.set(`${kind}/${key}`, { kind, key });
  for (const list of [rules, ...subRules.values()])
    for (const { text } of list) {
      for (const [, type = "", payload = ""] of text.matchAll(CONDITION)) {
        const kind = KINDS[type.toUpperCase()];
        if (kind !== undefined) add(kind, payload.trim());
      }
      yield;
    }
  if (!dns.enable) return [...wanted.values()];
  const conditionsOf = ({ conditions }: PolicyOptions) => conditions;
  const conditions = [
    dns.nameserverPolicy.values().flatMap(conditionsOf),
    dns.proxyServerNameserverPolicy.values().flatMap(conditionsOf),
    dns.fakeIpFilter.values(),
  ];
  for (const list of conditions)
    for (const condition of list) {
      if (condition.kind === "geosite") add("geosite", condition.category);
      yield;
    }
  for (const { type, payload } of dns.fakeIpRules) if (type === "GEOSITE") add("geosite", payload);
  for (const category of dns.fallbackFilter.geosite) add("geosite", category);
  if (dns.fallback.length > 0 && dns.fallbackFilter.geoip) add("geoip", dns.fallbackFilter.geoipCode);
  return [...wanted.values()];
}
