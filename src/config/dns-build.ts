/** What the keys of `dns` mean together: servers, policies, filters, and the errors that only show between keys. */
import type {
  DnsOptions,
  DomainCondition,
  FakeIpRule,
  NameserverOptions,
  PolicyOptions,
} from "#core/dns-options.ts";
import { Fault, show } from "#core/fields.ts";
import { suggestion } from "#core/nearest.ts";
import type { IpPrefix } from "#core/session.ts";
import { parseHostPort, parsePrefix } from "#net/address-fields.ts";
import { ipFromBytes, familyOf } from "#net/ip.ts";
import type { Context } from "./context.ts";
import { parseDomainConditions } from "./domain-conditions.ts";
import { parseNameserver } from "./nameserver.ts";
import type { Path } from "./report.ts";
import type { RuleSetNames } from "./rule-sets.ts";
import type { DnsKeys } from "./sections/dns.ts";

export function buildDns(keys: DnsKeys, context: Context, ruleSets: RuleSetNames): DnsOptions {
  const { report } = context;
  const read = (key: string, items: readonly string[], followRules = false) =>
    readServers(context, ["dns", key], items, followRules);
  const policies = (key: string, value: Readonly<Record<string, readonly string[]>>, followRules: boolean) =>
    readPolicies(context, ["dns", key], value, followRules, ruleSets);
  const defaultNameserver = read("default-nameserver", keys.defaultNameserver);
  for (const [at, server] of defaultNameserver.entries())
    if (server.ip === null && server.scheme !== "system")
      report.error(
        ["dns", "default-nameserver", at],
        `DNS NameServer[${at}] of default-nameserver: should be an IP address or system, got ${show(server.text)}`,
      );
  if (keys.defaultNameserver.length === 0)
    report.error(["dns", "default-nameserver"], "default-nameserver should have at least one nameserver");
  if (keys.enable && keys.nameserver.length === 0)
    report.error(["dns", "nameserver"], "if DNS configuration is turned on, nameserver cannot be empty");
  if (keys.respectRules && keys.proxyServerNameserver.length === 0)
    report.error(["dns", "respect-rules"], "respect-rules is on: proxy-server-nameserver cannot be empty");
  const proxyPolicies = policies("proxy-server-nameserver-policy", keys.proxyServerNameserverPolicy, false);
  if (proxyPolicies.length > 0 && keys.proxyServerNameserver.length === 0)
    report.error(
      ["dns", "proxy-server-nameserver-policy"],
      "proxy-server-nameserver-policy needs proxy-server-nameserver",
    );
  const { fallbackFilter, ipv6Timeout, fakeIpTtl, ...rest } = keys;
  if (fallbackFilter.geosite.length > 0)
    report.warning(
      ["dns", "fallback-filter", "geosite"],
      "geosite in fallback-filter is deprecated; use nameserver-policy with geosite: keys",
    );
  return {
    ...rest,
    listen: readListen(keys.listen, context),
    ipv6TimeoutMs: ipv6Timeout,
    ...readFakeIp(keys, context, ruleSets),
    fakeIpTtlSeconds: fakeIpTtl,
    nameserver: read("nameserver", keys.nameserver, keys.respectRules),
    defaultNameserver,
    fallback: read("fallback", keys.fallback, keys.respectRules),
    fallbackFilter: {
      ...fallbackFilter,
      ipcidr: fallbackFilter.ipcidr.map(({ bytes, bits }) => ({ ip: ipFromBytes(bytes), bits })),
      domain: readPatterns(context, ["dns", "fallback-filter", "domain"], fallbackFilter.domain),
    },
    nameserverPolicy: policies("nameserver-policy", keys.nameserverPolicy, keys.respectRules),
    proxyServerNameserver: read("proxy-server-nameserver", keys.proxyServerNameserver),
    proxyServerNameserverPolicy: proxyPolicies,
    directNameserver: read("direct-nameserver", keys.directNameserver),
    directNameserverFollowPolicy: keys.directNameserverFollowPolicy && keys.directNameserver.length > 0,
    cacheAlgorithm: keys.cacheAlgorithm === "arc" ? "arc" : "lru",
  };
}

function readServers(
  { report }: Context,
  path: Path,
  items: readonly string[],
  followRules: boolean,
): readonly NameserverOptions[] {
  const servers = new Map<string, NameserverOptions>(); // identical entries are collapsed
  for (const [at, item] of items.entries()) {
    const here = items.length > 1 || path.length === 2 ? [...path, at] : path;
    const server = parseNameserver(item, (message) =>
      report.warning(here, `DNS NameServer[${at}]: ${message}`),
    );
    if (server instanceof Fault) {
      report.error(here, `DNS NameServer[${at}] of ${path.slice(1).join(" ")}: ${server.message}`);
      continue;
    }
    const follows = server.followRules || (followRules && server.exit === null);
    servers.set(item.trim(), { ...server, followRules: follows });
  }
  return [...servers.values()];
}

function readPolicies(
  context: Context,
  path: Path,
  policies: Readonly<Record<string, readonly string[]>>,
  followRules: boolean,
  ruleSets: RuleSetNames,
): readonly PolicyOptions[] {
  const read: PolicyOptions[] = [];
  for (const [key, items] of Object.entries(policies)) {
    const conditions = readConditions(context, [...path, key], key, ruleSets);
    const servers = readServers(context, [...path, key], items, followRules);
    if (items.length === 0)
      context.report.error([...path, key], `policy ${show(key)} needs at least one nameserver`);
    read.push({ conditions, servers });
  }
  return read;
}

/** Errors of a condition are reported at `path`. */
export function readConditions(
  { report }: Context,
  path: Path,
  source: string,
  ruleSets: RuleSetNames,
): readonly DomainCondition[] {
  const conditions = parseDomainConditions(source);
  if (conditions instanceof Fault) {
    report.error(path, conditions.message);
    return [];
  }
  for (const condition of conditions) {
    if (condition.kind !== "rule-set") continue;
    const fault = ruleSets.fault(condition.name, ["domain", "classical"]);
    if (fault !== null) report.error(path, fault);
  }
  return conditions;
}

function readPatterns({ report }: Context, path: Path, items: readonly string[]): readonly string[] {
  const patterns: string[] = [];
  for (const [at, item] of items.entries()) {
    const conditions = parseDomainConditions(item);
    if (conditions instanceof Fault) report.error([...path, at], conditions.message);
    else
      for (const condition of conditions) if (condition.kind === "domain") patterns.push(condition.pattern);
  }
  return patterns;
}

function readListen(source: string, { report }: Context): DnsOptions["listen"] {
  if (source === "") return null;
  const listen = parseHostPort(source);
  if (listen === null)
    report.error(["dns", "listen"], `expected host:port such as 127.0.0.1:53 or :53, got ${show(source)}`);
  return listen === null || listen.port === 0 ? null : listen;
}

type FakeIp = Pick<DnsOptions, "fakeIpRange" | "fakeIpRange6" | "fakeIpFilter" | "fakeIpRules">;

function readFakeIp(keys: DnsKeys, context: Context, ruleSets: RuleSetNames): FakeIp {
  const range = (key: string, source: string, family: 4 | 6): IpPrefix | null => {
    if (source === "") return null;
    const value = parsePrefix(source);
    const example = family === 4 ? "198.18.0.1/16" : "fdfe:dcba:9876::1/64";
    // Gateway, next, one reserved, one to hand out, broadcast: a smaller range holds nothing.
    const widest = family === 4 ? 29 : 125;
    if (value !== null && familyOf(value.ip) === family && value.bits <= widest) return value;
    context.report.error(
      ["dns", key],
      `${key} must be an IPv${family} prefix of at most /${widest} such as ${example}, got ${show(source)}`,
    );
    return null;
  };
  if (keys.enhancedMode === "fake-ip" && keys.fakeIpRange === "" && keys.fakeIpRange6 === "")
    context.report.error(["dns", "fake-ip-range"], "fake-ip mode needs fake-ip-range or fake-ip-range6");
  const byRule = keys.fakeIpFilterMode === "rule";
  const path = (at: number): Path => ["dns", "fake-ip-filter", at];
  const items = [...keys.fakeIpFilter.entries()];
  return {
    fakeIpRange: range("fake-ip-range", keys.fakeIpRange, 4),
    fakeIpRange6: range("fake-ip-range6", keys.fakeIpRange6, 6),
    fakeIpFilter: byRule
      ? []
      : items.flatMap(([at, item]) => readConditions(context, path(at), item, ruleSets)),
    fakeIpRules: byRule
      ? items.flatMap(([at, item]) => readFakeIpRule(context, path(at), item, ruleSets))
      : [],
  };
}

const FAKE_IP_TYPES = [
  "DOMAIN",
  "DOMAIN-SUFFIX",
  "DOMAIN-KEYWORD",
  "DOMAIN-REGEX",
  "DOMAIN-WILDCARD",
  "GEOSITE",
  "RULE-SET",
  "MATCH",
];

/** `TYPE,payload,fake-ip` or `…,real-ip`; `MATCH,action`. The payload may hold commas. */
function readFakeIpRule(
  { report }: Context,
  path: Path,
  line: string,
  ruleSets: RuleSetNames,
): readonly FakeIpRule[] {
  const parts = line.split(",").map((part) => part.trim());
  const type = (parts[0] as string).toUpperCase();
  const action = (parts.at(-1) as string).toLowerCase();
  const payload = parts.slice(1, -1).join(",");
  if (!FAKE_IP_TYPES.includes(type))
    report.error(
      path,
      `fake-ip rule [${line}]: expected one of ${FAKE_IP_TYPES.join(", ")}${suggestion(type, FAKE_IP_TYPES)}`,
    );
  else if (action !== "fake-ip" && action !== "real-ip")
    report.error(path, `fake-ip rule [${line}]: the action must be fake-ip or real-ip, got ${show(action)}`);
  else if (type !== "MATCH" && payload === "")
    report.error(path, `fake-ip rule [${line}]: expected TYPE,payload,action`);
  else {
    const fault = type === "RULE-SET" ? ruleSets.fault(payload, ["domain", "classical"]) : null;
    if (fault === null) return [{ type, payload, fake: action === "fake-ip" }];
    report.error(path, `fake-ip rule [${line}]: ${fault}`);
  }
  return [];
}
