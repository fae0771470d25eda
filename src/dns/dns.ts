/** The DNS engine as the other parts of the program see it. */
import type { DnsAnswerView } from "#core/control.ts";
import type { DnsOptions } from "#core/dns-options.ts";
import type { Destination, Ip } from "#core/session.ts";
import type { DnsEnv } from "./env.ts";
import { cidrOf, type Cidr } from "#net/address/cidr.ts";
import type { NamedAddressesData } from "#net/address/named-addresses.ts";
import { NO_QUIC } from "#net/dial/nameserver.ts";
import { FakeIp, fakeIpFilter } from "./fake-ip.ts";
import { openHosts } from "./hosts.ts";
import { Mapping } from "./mapping.ts";
import { canonicalName } from "./name.ts";
import { prepareDestination, type Prepared } from "./prepare.ts";
import { encodeQuestion, type Query, QueryReader } from "./query.ts";
import { type CoreResolvers, openRoles } from "./roles.ts";
import { SharedAnswers } from "./shared-answers.ts";
import { DnsService, type HandleDns } from "./service.ts";
import { TYPE } from "./types.ts";
import { UpstreamPool } from "./upstream/index.ts";
import { viewOf } from "./view.ts";

/** What a reload takes over. */
export interface DnsState {
  readonly fakeIp: FakeIp | null;
  readonly mapping: readonly (readonly [Ip, string])[];
}

export interface Explanation {
  readonly name: string;
  /** Where the hosts table sends it; null: it is not in there. */
  readonly hosts: { readonly name: string; readonly addresses: readonly Ip[] | null } | null;
  /** Would a client get a fake address? */
  readonly faked: boolean;
  /** The policy condition, `fallback-filter` or `nameserver`. */
  readonly by: string;
  readonly servers: readonly string[];
  /** Is there an A or AAAA answer in the cache of the main resolver, for a question without DNSSEC bits and subnet? */
  readonly cached: boolean;
}

export interface Dns extends CoreResolvers, AsyncDisposable {
  /** A client's message through the whole chain. Throws `ProtocolError` where it is no query. */
  readonly handle: HandleDns;
  /** What rules and the dial need to know of a destination. */
  prepare(destination: Destination): Prepared;
  isFakeIp(ip: Ip): boolean;
  /** Addresses that stand for the name for which they were answered, or may; null: none does. To be asked for behind `importState`. */
  readonly namedAddresses: NamedAddressesData | null;
  /** What other threads may know of names, until the next flush; see `KnownNames`. */
  readonly knownNames: SharedArrayBuffer;
  /** Main resolver only: no hosts, no fake-IP. Throws `DialError`. */
  query(name: string, type: number, signal: AbortSignal): Promise<DnsAnswerView>;
  explain(name: string): Explanation;
  flushCache(): void;
  /** Answers and connections of the network before are of no use any more. */
  networkChanged(): void;
  flushFakeIp(): void;
  exportState(): DnsState;
  /** Takes pools of the same range and adds to the mapping. */
  importState(state: DnsState): void;
  /** Null outside of mode fake-ip. */
  readonly fakeIp: FakeIp | null;
  /**
   * Settles when no question of a client is being answered here, which takes the time of one question at most where no new
   * ones come.
   */
  answered(): Promise<void>;
}

/** What runs while `dns.enable` is true. Throws `ConfigError`; nothing stays open then. */
export async function openDns(options: DnsOptions, env: DnsEnv): Promise<Dns> {
  await using undo = new AsyncDisposableStack();
  const preferHttp3 = options.preferH3 && env.hasQuic();
  if (options.preferH3 && !preferHttp3) env.log.warning(`dns.prefer-h3: ${NO_QUIC}; HTTP/2 is used`);
  const answers = undo.use(new SharedAnswers(env.nowMs, env.nameTables));
  const hosts = await openHosts({
    watcher: answers,
    entries: env.hosts,
    systemFile: options.useSystemHosts ? env.hostsFile : null,
    nowMs: env.nowMs,
    slices: env.slices,
  });
  const pool = undo.use(new UpstreamPool({ ...env, preferHttp3 }));
  const roles = await env.slices.run(openRoles(options, env, pool, hosts, answers));
  for (const role of roles.open) undo.use(role);
  const fakeIp =
    options.enhancedMode === "fake-ip"
      ? undo.use(new FakeIp(options, await env.slices.run(fakeIpFilter(options, env.sets)), env.persist))
      : null;
  const mapping = options.enhancedMode === "normal" ? null : new Mapping();
  const { main } = roles;
  const service = new DnsService({
    hosts: options.useHosts ? hosts : null,
    fakeIp,
    mapping,
    ipv6: options.ipv6,
    resolver: main,
    observer: env.observer,
    log: env.log,
  });
  const preparing = { mode: options.enhancedMode, fakeIp, mapping, hosts, answers, ipv6: env.ipv6 };
  const life = undo.move();
  const reader = new QueryReader();
  const questionOf = (name: string, type: number) => reader.read(encodeQuestion(name, type)) as Query;
  const flushCache = () => {
    roles.open.forEach((role) => role.flush());
    answers.changed();
  };
  return {
    ...roles.resolvers,
    handle: (message, by) => service.handle(message, by),
    prepare: (destination) => prepareDestination(destination, preparing),
    fakeIp,
    knownNames: answers.memory,
    get namedAddresses() {
      const fake = fakeNetworks(options);
      const named = fakeIp?.named ?? [];
      return mapping && { fake, named, answered: mapping.addresses.memory };
    },
    isFakeIp: (ip) => fakeIp?.isFake(ip) ?? false,
    query: async (name, type, signal) => viewOf(await main.answer(questionOf(name, type), signal)),
    explain(text) {
      const name = canonicalName(text);
      const { by, upstreams } = main.strategy.choose(name);
      const cached = [TYPE.A, TYPE.AAAA].some((type) => main.has(questionOf(name, type).key));
      const servers = upstreams.map((upstream) => upstream.text);
      return { name, hosts: hosts.find(name), faked: fakeIp?.isFaked(name) ?? false, by, servers, cached };
    },
    flushCache,
    networkChanged() {
      flushCache();
      pool.reset();
    },
    flushFakeIp: () => fakeIp?.flush(),
    exportState: () => ({ fakeIp, mapping: mapping?.exportState() ?? [] }),
    importState(state) {
      if (state.fakeIp !== null) fakeIp?.takeOver(state.fakeIp);
      for (const [ip, host] of state.mapping) mapping?.insert(ip, host);
    },
    answered: () => service.answered(),
    [Symbol.asyncDispose]: () => life.disposeAsync(),
  };
}

/** Of both families, whatever is given out of them. */
function fakeNetworks({ enhancedMode, fakeIpRange, fakeIpRange6 }: DnsOptions): readonly Cidr[] {
  const ranges = enhancedMode === "fake-ip" ? [fakeIpRange, fakeIpRange6] : [];
  return ranges.filter((range) => range !== null).map(({ ip, bits }) => cidrOf(`${ip}/${bits}`));
}
