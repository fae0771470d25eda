/** Name resolution of one runtime: the DNS engine where the `dns` section is on, else the system's servers. */
import { existsSync } from "node:fs";
import type { Config } from "#config/config.ts";
import type { Log } from "#core/log.ts";
import type { LookUpAt } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Destination } from "#core/session.ts";
import type { Slices } from "#core/slices.ts";
import type { TlsProvider } from "#core/tls.ts";
import type { NameTables } from "#lib/name-table.ts";
import type { Trust } from "#core/trust.ts";
import { openDns, type Dns } from "#dns/dns.ts";
import type { PersistFakeIp } from "#dns/journaled-pool.ts";
import type { Observer } from "#dns/observe.ts";
import type { NameSets } from "#dns/policy.ts";
import type { Prepared } from "#dns/prepare.ts";
import type { CountryOf } from "#dns/strategy.ts";
import { openServerLookup } from "#dns/server-lookup.ts";
import { openSystemDns } from "#dns/system-dns.ts";
import type { Egress } from "#net/dial/egress.ts";
import { parseNameserver } from "#net/dial/nameserver.ts";
import { mostOpenFiles } from "#platform/open-files.ts";
import { quicLibrary } from "#platform/quic.ts";
import type { CoreDialers } from "./core-dialers.ts";

export interface DnsStackEnv {
  readonly coreDialers: CoreDialers;
  readonly egress: Egress;
  readonly sets: NameSets;
  readonly countryOf: CountryOf | null;
  readonly persist: PersistFakeIp | null;
  /** What learns from the answers that clients get; asked for at each. */
  readonly observer: () => Observer | null;
  readonly log: Log;
  readonly trust: Trust;
  readonly slices: Slices;
  readonly nameTables: NameTables;
  readonly tls: TlsProvider;
}

export interface DnsStack extends AsyncDisposable {
  readonly resolver: Resolver;
  readonly proxyResolver: Resolver;
  readonly directResolver: Resolver;
  prepare(destination: Destination): Prepared;
  /** As `Dns.knownNames`. */
  readonly knownNames: SharedArrayBuffer;
  flushCache(): void;
  networkChanged(): void;
  /** Null: the `dns` section is off. */
  readonly dns: Dns | null;
}

/** Questions that have no answer leave most descriptors to connections. */
const SHARE_OF_DESCRIPTORS = 0.25;
const RESOLV_CONF = "/etc/resolv.conf";
const HOSTS_FILE = "/etc/hosts";

/** Throws `ConfigError`; nothing stays open then. */
export async function openDnsStack(
  config: Config,
  {
    coreDialers,
    egress,
    sets,
    countryOf,
    persist,
    observer,
    log,
    trust,
    slices,
    nameTables,
    tls,
  }: DnsStackEnv,
): Promise<DnsStack> {
  const system = {
    hosts: config.hosts,
    ipv6: config.general.ipv6,
    exitFor: coreDialers.for.bind(coreDialers),
    ownAddresses: () => egress.dnsAddresses,
    log,
    trust,
    nowMs: Date.now,
    slices,
    nameTables,
    mostSockets: Math.floor((mostOpenFiles()?.soft ?? Infinity) * SHARE_OF_DESCRIPTORS),
    resolvConf: existsSync(RESOLV_CONF) ? RESOLV_CONF : null,
    hostsFile: process.env["DISABLE_SYSTEM_HOSTS"] === "true" || !existsSync(HOSTS_FILE) ? null : HOSTS_FILE,
  };
  if (config.dns.enable) {
    const dns = await openDns(config.dns, {
      ...system,
      sets,
      countryOf,
      observer,
      persist,
      hasQuic: () => tls.allowsQuic && quicLibrary() !== null,
    });
    return { ...pick(dns), dns, [Symbol.asyncDispose]: () => dns[Symbol.asyncDispose]() };
  }
  const plain = await openSystemDns(system);
  const { resolver } = plain;
  return {
    resolver,
    proxyResolver: resolver,
    directResolver: resolver,
    prepare: (destination) => plain.prepare(destination),
    knownNames: plain.knownNames,
    flushCache: () => plain.flushCache(),
    networkChanged: () => plain.networkChanged(),
    dns: null,
    [Symbol.asyncDispose]: () => plain[Symbol.asyncDispose](),
  };
}

function pick(dns: Dns): Omit<DnsStack, "dns" | keyof AsyncDisposable> {
  const { resolver, proxyResolver, directResolver } = dns;
  return {
    resolver,
    proxyResolver,
    directResolver,
    prepare: (destination) => dns.prepare(destination),
    knownNames: dns.knownNames,
    flushCache: () => dns.flushCache(),
    networkChanged: () => dns.networkChanged(),
  };
}

/** Servers that a node names itself. */
export function openLookUpAt(
  { general }: Config,
  resolver: Resolver,
  { log, trust }: Pick<DnsStackEnv, "log" | "trust">,
): LookUpAt {
  return (servers, key, dialer) => {
    const parsed = servers.map((text) => parseNameserver(text, (fault) => log.warning(`${key}: ${fault}`)));
    return openServerLookup(parsed, {
      dialer,
      resolver,
      key,
      ipv6: general.ipv6,
      log,
      nowMs: Date.now,
      trust,
    });
  };
}
