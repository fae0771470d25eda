/** What the keys of `dns` mean together: servers, policies, filters, and the errors that only show between keys. */
import type {
  DnsOptions,
  DomainCondition,
  FakeIpRule,
  ListenHost,
  NameserverOptions,
  PolicyOptions,
} from "#core/dns-options.ts";
import { messageOf, UnusableError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { IpPrefix } from "#core/session.ts";
import { parseHostPort, parsePrefix } from "#net/address/address-fields.ts";
import { parseConditions, parseFakeIpRule } from "#net/dial/dns-policy.ts";
import { familyOf, ipFromBytes, LOOPBACK_V4, parseIp } from "#net/address/ip.ts";
import { needsNoResolver, noServer, parseNameserver, withoutUnsupported } from "#net/dial/nameserver.ts";
import type { Context } from "./context.ts";
import type { Path, Report } from "./report.ts";
import type { RuleSetNames } from "./rule-sets.ts";
import { DEFAULT_CACHE_SIZE, type DnsKeys } from "./sections/dns.ts";

const SCHEMES: ReadonlySet<string> = new Set([
  "udp",
  "tcp",
  "tls",
  "https",
  "h3",
  "http",
  "quic",
  "system",
  "dhcp",
  "rcode",
  "ts",
  "tailscale",
]);

const CACHE_ALGORITHMS: ReadonlySet<string> = new Set(["lru", "arc"]);

export function buildDns(keys: DnsKeys, context: Context, ruleSets: RuleSetNames): DnsOptions {
  const { report } = context;
  const read = (key: string, items: readonly string[], followRules = false) =>
    readServers(context, ["dns", key], items, followRules);
  const policies = (key: string, value: Readonly<Record<string, readonly string[]>>, followRules: boolean) =>
    readPolicies(context, ["dns", key], value, followRules, ruleSets);
  const defaultNameserver = readServers(
    context,
    ["dns", "default-nameserver"],
    keys.defaultNameserver,
    false,
    needsAddress,
  );
  reportMissing(keys, report);
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
  if (!CACHE_ALGORITHMS.has(keys.cacheAlgorithm))
    report.warning(
      ["dns", "cache-algorithm"],
      `cache-algorithm ${show(keys.cacheAlgorithm)} is unknown and means lru${report.suggest(keys.cacheAlgorithm, CACHE_ALGORITHMS)}`,
    );
  return {
    ...rest,
    listen: readListen("listen", keys.listen, context),
    listenQuic: readListen("listen-quic", keys.listenQuic, context),
    listenH3: readListen("listen-h3", keys.listenH3, context),
    ipv6TimeoutMs: ipv6Timeout,
    ...readFakeIp(keys, context, ruleSets),
    fakeIpTtlSeconds: fakeIpTtl || 1,
    nameserver: read("nameserver", keys.nameserver, keys.respectRules),
    defaultNameserver,
    fallback: read("fallback", keys.fallback, keys.respectRules),
    fallbackFilter: {
      ...fallbackFilter,
      ipcidr: fallbackFilter.ipcidr.map(({ bytes, bits }) => ({ ip: ipFromBytes(bytes), bits })),
      domain: readPatterns(context, ["dns", "fallback-filter", "domain"], fallbackFilter.domain, ruleSets),
    },
    nameserverPolicy: policies("nameserver-policy", keys.nameserverPolicy, keys.respectRules),
    proxyServerNameserver: read("proxy-server-nameserver", keys.proxyServerNameserver),
    proxyServerNameserverPolicy: proxyPolicies,
    directNameserver: read("direct-nameserver", keys.directNameserver),
    directNameserverFollowPolicy: keys.directNameserverFollowPolicy && keys.directNameserver.length > 0,
    cacheAlgorithm: keys.cacheAlgorithm === "arc" ? "arc" : "lru",
    cacheMaxSize: keys.cacheMaxSize || DEFAULT_CACHE_SIZE,
  };
}

/** What resolves the names of other servers can have none itself. */
function needsAddress(server: NameserverOptions): string | null {
  return needsNoResolver(server) ? null : `should be an IP address or system, got ${show(server.text)}`;
}

/** Lists that must not be empty. */
function reportMissing(keys: DnsKeys, report: Report): void {
  if (keys.defaultNameserver.length === 0)
    report.error(["dns", "default-nameserver"], "default-nameserver should have at least one nameserver");
  if (keys.enable && keys.nameserver.length === 0)
    report.error(["dns", "nameserver"], "if DNS configuration is turned on, nameserver cannot be empty");
  if (keys.respectRules && keys.proxyServerNameserver.length === 0)
    report.error(["dns", "respect-rules"], "respect-rules is on: proxy-server-nameserver cannot be empty");
}

/** `faultOf`: what else is wrong with a server in this list. */
function readServers(
  { report }: Context,
  path: Path,
  items: readonly string[],
  followRules: boolean,
  faultOf: (server: NameserverOptions) => string | null = () => null,
): readonly NameserverOptions[] {
  const servers = new Map<string, NameserverOptions>(); // identical entries are collapsed
  const key = path.slice(1).join(" ");
  for (const [at, item] of items.entries()) {
    const here = [...path, at];
    try {
      const server = parseNameserver(item, (message) =>
        report.warning(here, `DNS NameServer[${at}] of ${key}: ${message}`),
      );
      const fault = faultOf(server);
      if (fault !== null) report.error(here, `DNS NameServer[${at}] of ${key}: ${fault}`);
      servers.set(item.trim(), {
        ...server,
        followRules: server.followRules || (followRules && server.exit === null),
      });
    } catch (error) {
      if (error instanceof UnusableError) {
        report.warning(here, `DNS NameServer[${at}] of ${key}: ${error.message}; it is left out`);
        continue;
      }
      const scheme = item.includes("://") ? item.slice(0, item.indexOf("://")).toLowerCase() : null;
      const hint = scheme === null || SCHEMES.has(scheme) ? "" : report.suggest(scheme, SCHEMES);
      report.error(here, `DNS NameServer[${at}] of ${key}: ${messageOf(error)}${hint}`);
    }
  }
  const list = [...servers.values()];
  const warn = (message: string): void => report.warning(path, message);
  if (list.length === 0 && items.length > 0) return noServer(`dns.${key}`, warn);
  // What the runtime can do is not the file's business: it is asked when the service is built.
  return withoutUnsupported(list, `dns.${key}`, warn, () => true);
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
    const conditions = readConditions(context, [...path, key], key, ruleSets, true);
    const servers = readServers(context, [...path, key], items, followRules);
    if (items.length === 0)
      context.report.error([...path, key], `policy ${show(key)} needs at least one nameserver`);
    read.push({ conditions, servers });
  }
  return read;
}

/**
 * Errors of a condition are reported at `path`. What is no pattern matches nothing. `decides`: names that it was meant for
 * would go to other servers without it, so one that is likely a slip (an empty label) is an error.
 */
export function readConditions(
  { report }: Context,
  path: Path,
  source: string,
  ruleSets: RuleSetNames,
  decides = false,
): readonly DomainCondition[] {
  try {
    const conditions = parseConditions(source);
    for (const condition of conditions) {
      const fault =
        condition.kind === "rule-set" ? ruleSets.fault(condition.name, ["domain", "classical"]) : null;
      if (fault !== null) report.error(path, fault);
    }
    return conditions;
  } catch (error) {
    if (error instanceof UnusableError || !decides)
      report.warning(path, `${messageOf(error)}; it matches nothing`);
    else report.error(path, `bad domain pattern: ${messageOf(error)}`);
    return [];
  }
}

function readPatterns(
  context: Context,
  path: Path,
  items: readonly string[],
  ruleSets: RuleSetNames,
): readonly string[] {
  return items
    .flatMap((item, at) => readConditions(context, [...path, at], item, ruleSets))
    .flatMap((condition) => (condition.kind === "domain" ? [condition.pattern] : []));
}

function readListen(key: string, source: string, { report }: Context): ListenHost | null {
  if (source === "") return null;
  const listen = parseHostPort(source.replace(/^localhost:/i, `${LOOPBACK_V4}:`));
  if (listen !== null && (listen.host === "" || parseIp(listen.host) !== null))
    return listen.port === 0 ? null : listen;
  report.warning(
    ["dns", key],
    `expected host:port such as 127.0.0.1:53 or :53, got ${show(source)}; no DNS listener is opened`,
  );
  return null;
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
      ? items.flatMap(([at, item]) => readFakeIpLine(context, path(at), item, ruleSets))
      : [],
  };
}

function readFakeIpLine(
  { report }: Context,
  path: Path,
  line: string,
  ruleSets: RuleSetNames,
): readonly FakeIpRule[] {
  try {
    const rule = parseFakeIpRule(line);
    const fault = rule.type === "RULE-SET" ? ruleSets.fault(rule.payload, ["domain", "classical"]) : null;
    if (fault === null) return [rule];
    report.error(path, `fake-ip-filter rule [${line}]: ${fault}`);
  } catch (error) {
    report.error(path, messageOf(error));
  }
  return [];
}
