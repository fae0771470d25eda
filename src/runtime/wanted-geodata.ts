/** What of the databases a configuration asks for, so that it can be read before it is asked for. */
import type { Config } from "#config/config.ts";
import type { DomainCondition, PolicyOptions } from "#core/dns-options.ts";
import type { GeoKey } from "#geodata/geodata.ts";
import type { Steps } from "#lib/steps.ts";

/** Alone in a rule's line or in a condition of a logic rule. */
const CONDITION = /\b(?:SRC-)?(GEOSITE|GEOIP|IP-ASN)\s*,\s*!?([^,()]+)/gi;

const KINDS: Readonly<Record<string, GeoKey["kind"]>> = {
  GEOSITE: "geosite",
  GEOIP: "geoip",
  "IP-ASN": "asn",
};

/** Private addresses: known without a database. */
export const isLanCode = (code: string): boolean => code === "lan" || code === "private";

type Add = (kind: GeoKey["kind"], key: string) => void;

/** What lines of rules or conditions ask for, each once. */
export function* wantedByLines(lines: Iterable<string>): Steps<readonly GeoKey[]> {
  const wanted = new Map<string, GeoKey>();
  yield* addWanted(lines, addTo(wanted));
  return [...wanted.values()];
}

/** What a configuration asks for, each once. What classical rule lists name is not in it: they say it when they are read. */
export function* wantedGeodata(config: Config): Steps<readonly GeoKey[]> {
  const wanted = new Map<string, GeoKey>();
  const add = addTo(wanted);
  const { rules, subRules } = config;
  for (const list of [rules, ...subRules.values()])
    yield* addWanted(
      list.values().map(({ text }) => text),
      add,
    );
  yield* addOfNames(config, add);
  return [...wanted.values()];
}

/** What names and addresses are judged by before any rule is looked at, each once. */
export function* wantedByNames(config: Config): Steps<readonly GeoKey[]> {
  const wanted = new Map<string, GeoKey>();
  yield* addOfNames(config, addTo(wanted));
  return [...wanted.values()];
}

function* addOfNames({ dns, sniffer }: Config, add: Add): Steps<void> {
  if (dns.enable) yield* addOfDns(dns, add);
  if (sniffer.enable) yield* addOfSniffer(sniffer, add);
}

function addTo(wanted: Map<string, GeoKey>): Add {
  return (kind, key) => void wanted.set(`${kind}/${key}`, { kind, key });
}

function* addWanted(lines: Iterable<string>, add: Add): Steps<void> {
  for (const line of lines) {
    for (const [, type = "", payload = ""] of line.matchAll(CONDITION)) {
      const kind = KINDS[type.toUpperCase()];
      if (kind !== undefined) add(kind, payload.trim());
    }
    yield;
  }
}

function* addOfDns(dns: Config["dns"], add: Add): Steps<void> {
  const conditionsOf = ({ conditions }: PolicyOptions) => conditions;
  for (const conditions of [
    dns.nameserverPolicy.values().flatMap(conditionsOf),
    dns.proxyServerNameserverPolicy.values().flatMap(conditionsOf),
    dns.fakeIpFilter,
  ])
    yield* addOfConditions(conditions, add);
  for (const { type, payload } of dns.fakeIpRules) if (type === "GEOSITE") add("geosite", payload);
  for (const category of dns.fallbackFilter.geosite) add("geosite", category);
  if (dns.fallback.length > 0 && dns.fallbackFilter.geoip) add("geoip", dns.fallbackFilter.geoipCode);
}

function* addOfSniffer(sniffer: Config["sniffer"], add: Add): Steps<void> {
  yield* addOfConditions(sniffer.forceDomain, add);
  yield* addOfConditions(sniffer.skipDomain, add);
  for (const condition of [...sniffer.skipSrcAddress, ...sniffer.skipDstAddress])
    if (condition.kind === "geoip" && !isLanCode(condition.code)) add("geoip", condition.code);
}

function* addOfConditions(conditions: Iterable<DomainCondition>, add: Add): Steps<void> {
  for (const condition of conditions) {
    if (condition.kind === "geosite") add("geosite", condition.category);
    yield;
  }
}
