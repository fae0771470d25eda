/** Sniffing as the configuration asks for it, and what a sniffed name does to a destination. */
import type { AddressCondition, SnifferOptions } from "#config/sniffer-build.ts";
import { DialError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { RuleScope } from "#core/rule.ts";
import type { Destination, Ip } from "#core/session.ts";
import type { Sniffed, Sniffer } from "#core/sniffer.ts";
import { anyOf } from "#dns/policy.ts";
import type { Prepared } from "#dns/prepare.ts";
import { isLanIp } from "#net/address/cidr.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import type { Prepared as Routable } from "#router/session-facts.ts";
import { SNIFF_PROTOCOLS } from "#router/sniff/index.ts";
import { SniffStage, type SniffedProtocol } from "#router/sniff/stage.ts";
import type { DnsStack } from "./names.ts";
import { nameSets } from "./scope.ts";
import { isLanCode } from "./wanted-geodata.ts";

export interface SniffingEnv {
  readonly names: Pick<DnsStack, "prepare">;
  readonly scope: RuleScope;
  readonly log: Log;
}

/** Null where nothing is to be sniffed. */
export function openSniffer(options: SnifferOptions, { names, scope, log }: SniffingEnv): Sniffer | null {
  const protocols = options.enable ? sniffedProtocols(options) : [];
  if (protocols.length === 0) return null;
  const sets = nameSets(scope);
  const policy = {
    protocols,
    forceDnsMapping: options.forceDnsMapping,
    parsePureIp: options.parsePureIp,
    forcesNames: options.forceDomain.length > 0,
    isForced: anyOf(options.forceDomain, sets),
    isSkipped: anyOf(options.skipDomain, sets),
    skipsSource: addressTest(options.skipSrcAddress, scope),
    skipsDestination: addressTest(options.skipDstAddress, scope),
  };
  return new SniffStage(policy, {
    prepare: (destination) => names.prepare(destination),
    log,
    nowMs: () => performance.now(),
  });
}

function sniffedProtocols({ sniff }: SnifferOptions): readonly SniffedProtocol[] {
  return sniff.map(({ protocol: type, ports, overrideDestination: overridesDestination }) => {
    const protocol = SNIFF_PROTOCOLS.find((known) => known.type === type);
    if (protocol === undefined) throw new Error(`no sniffer for ${type}`);
    return { protocol, ports, overridesDestination };
  });
}

/** The sets are asked for at every look, so that an update counts at once. */
function addressTest(conditions: readonly AddressCondition[], scope: RuleScope): (ip: Ip) => boolean {
  const table = new CidrTable(
    conditions.filter((condition) => condition.kind === "cidr").map(({ cidr }) => cidr),
  );
  const others = conditions.filter((condition) => condition.kind !== "cidr");
  const holds = (condition: (typeof others)[number], ip: Ip): boolean => {
    if (condition.kind === "rule-set")
      return scope.ruleSet(condition.name)?.match({ ip, host: null }) === true;
    if (isLanCode(condition.code)) return isLanIp(ip);
    return scope.geoip(condition.code)?.match({ ip }) === true;
  };
  return (ip) => table.holds(ip) || others.some((condition) => holds(condition, ip));
}

/**
 * The destination for rules and outbound. Throws `DialError` for a fake address that is no longer in the pool, unless
 * the client sent a host name.
 */
export function routable(
  destination: Destination,
  sniffed: Sniffed | null,
  prepare: (destination: Destination) => Prepared,
): Routable {
  const { refusal, ...prepared } = prepare(destination);
  if (sniffed !== null) return withName(prepared, refusal === null, sniffed, prepare);
  if (refusal !== null) throw new DialError("resolve", refusal);
  return prepared;
}

/** Address rules still read the address that the client connected to, since it is a real one. */
function withName(
  asked: Pick<Prepared, "destination" | "dial">,
  isReal: boolean,
  { host, overridesDestination }: Sniffed,
  prepare: (destination: Destination) => Prepared,
): Routable {
  const ip = isReal ? asked.destination.ip : null;
  const isNowhere = asked.destination.host === null && ip === null;
  const rulesSee = { sniffedHost: host, host };
  if (!overridesDestination && !isNowhere)
    return { ...asked, ...rulesSee, dnsMode: "normal", ...(ip === null ? {} : { ip }) };
  const { destination, dial, dnsMode } = prepare({ host, ip: null, port: asked.destination.port }); // hosts may have the name
  const known = destination.ip ?? ip;
  return { destination, dial, dnsMode, ...rulesSee, ...(known === null ? {} : { ip: known }) };
}
