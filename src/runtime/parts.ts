/** What a runtime is made of, opened in the order in which one needs the other. */
import type { Config, ProxyConfig } from "#config/config.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Trust } from "#core/trust.ts";
import type { PersistFakeIp } from "#dns/journaled-pool.ts";
import { openTrust } from "#net/dial/trust.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import { openRouterInSteps } from "#router/router.ts";
import { type DnsListeners, openDnsListeners } from "./dns-listener.ts";
import { CoreDialers } from "./core-dialers.ts";
import { FakeIpStore } from "./fake-ip-store.ts";
import { Inbounds } from "./inbounds.ts";
import { RuleData } from "./lists.ts";
import { openDnsStack, openLookUpAt, type DnsStack } from "./names.ts";
import { dnsAnswers, openOutbounds, type Outbounds } from "./outbounds.ts";
import { openRules, type RulesBefore } from "./rules.ts";
import { nameSets } from "./scope.ts";
import { routable } from "./sniffing.ts";
import { showingBrowser } from "#transport/tls/provider.ts";
import { TimeKeeper } from "./time-keeper.ts";
import type { TunChange } from "./tun-change.ts";
import type { RuntimeEnv } from "./runtime-env.ts";

/** Everything by which a session leaves. */
interface OutboundParts {
  readonly outbounds: Outbounds;
  readonly router: RuleRouter;
  readonly names: DnsStack;
  /** Null: `profile.store-fake-ip` is false. */
  readonly fakeIps: FakeIpStore | null;
  readonly lists: RuleData;
  readonly trust: Trust;
  readonly timeKeeper: TimeKeeper;
}

/** Everything by which it comes in. */
interface InboundParts {
  readonly inbounds: Inbounds;
  readonly dnsListeners: DnsListeners;
  readonly tuns: TunChange;
}

export interface Parts extends OutboundParts, InboundParts {
  readonly config: Config;
}

/** What is taken over of the runtime before. */
type Previous = Pick<Parts, "config" | "lists" | "inbounds" | "names" | "router">;

/** Throws with nothing left open but what `undo` has. */
export async function openParts(
  config: Config,
  previous: Previous | null,
  env: RuntimeEnv,
  undo: AsyncDisposableStack,
): Promise<Parts> {
  const parts = await openOutboundParts(config, previous, env, undo);
  return { config, ...parts, ...(await openInboundParts(config, previous, env, parts)) };
}

async function openOutboundParts(
  config: Config,
  previous: Previous | null,
  { host, health, mode, inForce, onRuleList }: RuntimeEnv,
  undo: AsyncDisposableStack,
): Promise<OutboundParts> {
  const { log, files, cache, egress, selfDials, slices, nameTables, memory } = host;
  const { interfaceName, routingMark, tcpConcurrent, ipv6, keepAlive } = config.general;
  const coreDialers = new CoreDialers({
    interfaceName,
    routingMark,
    egress,
    selfDials,
    tcpConcurrent,
    ipv6,
    keepAlive,
  });
  const trust = await openTrust(config.tls.customCertifactes, files, "tls.custom-certifactes");
  const lists = undo.use(
    await RuleData.open(config, previous?.lists ?? null, { host, health, coreDialers, trust, onRuleList }),
  );
  const { scope, countryOf } = lists;
  const fakeIps = config.profile.storeFakeIp ? new FakeIpStore(cache) : null;
  const persist: PersistFakeIp | null = fakeIps === null ? null : (batch) => fakeIps.add(batch);
  const observer = () => host.kernelDirect.observer;
  const sets = nameSets(scope);
  const names = undo.use(
    await openDnsStack(config, {
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
      tls: host.tls[config.general.relay],
    }),
  );
  const isFaking = (previous?.names.dns?.fakeIp ?? null) !== null; // then its pools are taken, not the stored ones
  const pools = names.dns?.fakeIp ?? null;
  if (fakeIps !== null && pools !== null && !isFaking) await slices.run(pools.restore(fakeIps.load()));
  const choices = config.profile.storeSelected ? cache : host.choices;
  const providers = lists.proxyProviders.all;
  const { nowMs } = host.clock;
  const outbounds = undo.use(
    await openOutbounds(config, {
      ...names,
      lookUpAt: openLookUpAt(config, names.proxyResolver, { log, trust }),
      dns: names.dns === null ? null : dnsAnswers(inForce.handleDns, log),
      choices,
      health,
      providers,
      providedConfig: configsOf(lists),
      files,
      egress,
      selfDials,
      log,
      nowMs,
      trust,
      tls: showingBrowser(host.tls[config.general.relay], config.legacy.globalClientFingerprint),
      slices,
      memory,
    }),
  );
  await lists.loadNodes(previous?.lists ?? null, outbounds);
  for (const text of await slices.run(outbounds.groupFaults())) log.warning(text);
  const rules = await slices.run(openRules(config, scope, previous === null ? null : rulesOf(previous)));
  const router = await slices.run(
    openRouterInSteps({
      ...rules,
      before: previous?.router.lists ?? null,
      mode,
      outbound: (name) => outbounds.all.get(name) ?? null,
      global: outbounds.global,
      direct: outbounds.direct,
      resolver: names.resolver,
      processes: host.processes,
      neighbours: host.neighbours,
      findProcessMode: config.general.findProcessMode,
      prepare: ({ destination }, sniffed) => routable(destination, sniffed, (asked) => names.prepare(asked)),
      nowMs: Date.now,
    }),
  );
  coreDialers.bind({ outbounds: outbounds.all, router });
  const way = coreDialers.through(config.ntp.dialerProxy || "DIRECT");
  const timeKeeper = undo.use(new TimeKeeper({ options: config.ntp, dialer: way, clock: host.clock, log }));
  return { outbounds, router, names, fakeIps, lists, trust, timeKeeper };
}

function rulesOf({ config, router }: Previous): RulesBefore {
  const subRules = new Map(router.lists.nested.map(({ name, rules }) => [name, rules]));
  return { config, rules: router.lists.main.rules, subRules };
}

/**
 * Made outside of `openOutboundParts`: functions of one call share its variables, and a retired DNS engine, which listeners
 * that outlive reloads still reach, would keep the lists in memory.
 */
function configsOf({ proxyProviders }: RuleData): (node: Outbound) => ProxyConfig | null {
  return (node) => proxyProviders.originOf(node)?.config ?? null;
}

async function openInboundParts(
  config: Config,
  previous: Previous | null,
  { host, accept, inForce, changeTuns, adopt, tolerant }: RuntimeEnv,
  { lists }: OutboundParts,
): Promise<InboundParts> {
  const { log, files, sockets, live, clock, memory } = host;
  const tls = host.tls[config.general.relay];
  const { direct: dialer, through } = inForce;
  const { nowMs } = clock;
  const env = { sockets, live, accept, files, dialer, through, tls, log, nowMs, memory, tolerant };
  const inbounds = await Inbounds.open(config, previous?.inbounds ?? null, env);
  await using opened = new AsyncDisposableStack();
  opened.defer(() => inbounds.abandon());
  const dnsListeners = opened.use(
    await openDnsListeners(config, inbounds.claims, { host, inForce, tolerant }),
  );
  const tuns = opened.use(await changeTuns(config, lists));
  await adopt(config, inbounds);
  opened.move();
  return { inbounds, dnsListeners, tuns };
}
