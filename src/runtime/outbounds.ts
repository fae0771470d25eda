import { DEFAULT_GROUP_SETTINGS, type Config, type GroupConfig, type ProxyConfig } from "#config/config.ts";
import type { Lines } from "#core/group.ts";
import type { Log } from "#core/log.ts";
import type { Dialer, DnsAnswers, Outbound } from "#core/outbound.ts";
import type { ProxyProvider } from "#core/provider.ts";
import { isGroup } from "#core/outbound.ts";
import { serveDnsStream } from "#dns/server.ts";
import type { HandleDns } from "#dns/service.ts";
import { directOutbound } from "#protocols/direct/index.ts";
import { passOutbound, rejectDropOutbound, rejectOutbound } from "#protocols/reject/index.ts";
import { GROUP_KINDS } from "#groups/index.ts";
import { valueAt } from "#lib/at.ts";
import type { Steps } from "#lib/steps.ts";
import { membersIfNone } from "./awaited-outbound.ts";
import { groupFault, InertOutbound, reasonOf } from "./inert.ts";
import { NodeDialers, toServer } from "./node-dialers.ts";
import { NodeLines } from "./node-lines.ts";
import { liveSettings, memberList, timesListed, type MemberSources } from "./members.ts";
import type { OutboundsEnv } from "./outbounds-env.ts";

/** All outbounds of one runtime, by name. */
export interface Outbounds extends AsyncDisposable {
  /** Built-ins, proxies and groups, in the order in which dashboards show them. */
  readonly all: ReadonlyMap<string, Outbound>;
  readonly direct: Outbound;
  readonly global: Outbound;
  /** Ends what groups do by themselves (delay tests); they still pick. For a generation that only finishes its sessions. */
  quiet(): Promise<void>;
  /** Options and common fields as configured; absent for built-ins. */
  readonly configOf: ReadonlyMap<string, ProxyConfig | GroupConfig>;
  /** A sentence a group that leads nowhere, or elsewhere than the file says, with the nodes that there are now. */
  groupFaults(): Steps<readonly string[]>;
  /** Makes an outbound of a node that is in no file; the caller owns it. */
  open(node: ProxyConfig): Promise<Outbound>;
}

/** Throws with nothing left open. The configuration has made sure that every name exists and no group holds itself. */
export async function openOutbounds(config: Config, env: OutboundsEnv): Promise<Outbounds> {
  await using undo = new AsyncDisposableStack();
  const all = new Map<string, Outbound>();
  const entries = new Map<string, ProxyConfig | GroupConfig>(
    config.proxies.map((proxy) => [proxy.name, proxy]),
  );
  const nodeOf = (node: Outbound) => env.providedConfig(node) ?? nodeConfig(node, all, entries);
  const dialers = new NodeDialers(config, env, all, nodeOf);
  const direct = directOutbound("DIRECT", dialers.direct);
  const builtIns = [
    direct,
    rejectOutbound("REJECT"),
    rejectDropOutbound("REJECT-DROP"),
    passOutbound("PASS", "rule"),
    passOutbound("PASS-RULE", "line"),
    directOutbound("COMPATIBLE", dialers.direct, "Compatible"),
  ];
  for (const outbound of builtIns) all.set(outbound.name, undo.use(outbound));
  for (const proxy of config.proxies) {
    all.set(proxy.name, undo.use(await openProxy(proxy, dialers, env)));
    if (env.slices.isOver) await env.slices.pause();
  }
  const groups = [...config.groups];
  if (!groups.some(({ name }) => name === "GLOBAL")) groups.push(globalGroup(config));
  for (const group of groups) entries.set(group.name, group);
  const lines = undo.use(
    new NodeLines({
      configOf: nodeOf,
      find: (name) => all.get(name) ?? null,
      open: (node, dialer) => openProxy(node, dialers, env, dialer),
    }),
  );
  const opened = await openGroups(groups, all, undo, { ...env, lines });

  const owned = undo.move();
  return {
    all,
    direct,
    global: valueAt(all, "GLOBAL"),
    open: (node) => openProxy(node, dialers, env),
    *groupFaults() {
      const faults: string[] = [];
      for (const config of groups) {
        const group = all.get(config.name);
        const fault = group === undefined || !isGroup(group) ? null : groupFault(group, config);
        if (fault !== null) faults.push(`group ${config.name}: ${fault}`);
        yield; // filters have gone through all nodes of its providers
      }
      return faults;
    },
    async quiet() {
      await Promise.all(opened.map((group) => group[Symbol.asyncDispose]())); // a second time does nothing
    },
    configOf: entries,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Of a node of the file; null for anything else. */
function nodeConfig(
  node: Outbound,
  all: ReadonlyMap<string, Outbound>,
  entries: ReadonlyMap<string, ProxyConfig | GroupConfig>,
): ProxyConfig | null {
  const config = entries.get(node.name);
  return config === undefined || "kind" in config || all.get(node.name) !== node ? null : config;
}

/**
 * A node that cannot be opened costs itself alone: it becomes inert, with a warning. `before`: what it reaches its server
 * through, instead of what its own lines say.
 */
async function openProxy(
  proxy: ProxyConfig,
  dialers: NodeDialers,
  env: OutboundsEnv,
  before: Dialer | null = null,
): Promise<Outbound> {
  const { name, type, protocol, options, inert } = proxy;
  const side = protocol?.outbound;
  if (inert !== null || side === undefined)
    return new InertOutbound(name, side?.apiType ?? type, inert ?? `type ${type} is not in this build`);
  const dialer = before ?? dialers.for(proxy);
  try {
    const opened = await side.open(options as never, {
      name,
      dialer: type === "direct" ? dialer : toServer(dialer),
      resolver: env.proxyResolver,
      destinations: env.resolver,
      lookUpAt: env.lookUpAt,
      way: JSON.stringify([proxy.dialerProxy, proxy.interfaceName, proxy.routingMark, proxy.ipVersion]),
      ...(before === null ? { memory: env.memory } : {}), // a line's way has no name
      files: env.files,
      log: env.log,
      nowMs: env.nowMs,
      trust: env.trust,
      tls: env.tls,
      ...(env.dns === null ? {} : { dns: env.dns }),
    });
    if (before !== null || proxy.dialerProxy !== null) env.selfDials.chains(opened);
    return opened;
  } catch (error) {
    const why = reasonOf(error, name);
    env.log.warning(`proxy ${name}: ${why}; the node stays and cannot be dialled`);
    return new InertOutbound(name, side.apiType, why);
  }
}

/** As for hijacked questions: a datagram is no longer than this. */
const MAX_ANSWER_BYTES = 2048;

export function dnsAnswers(handle: HandleDns, log: Log): DnsAnswers {
  return {
    answer: (message, mostBytes = MAX_ANSWER_BYTES) =>
      handle(message, { network: "udp", maxBytes: Math.min(mostBytes, MAX_ANSWER_BYTES) }),
    serve: (stream) => serveDnsStream(stream, handle, log),
  };
}

/** GLOBAL, where the file does not define it: DIRECT, REJECT, the proxies and the groups in file order. */
function globalGroup({ proxies, groups }: Config): GroupConfig {
  const kind = GROUP_KINDS.find(({ type }) => type === "select");
  if (kind === undefined) throw new Error("the group kind select is not registered");
  const members = ["DIRECT", "REJECT", ...[...proxies, ...groups].map(({ name }) => name)];
  return { name: "GLOBAL", kind, members, options: {} };
}

type GroupsEnv = OutboundsEnv & { readonly lines: Lines };

/** Members first: a group is given the outbounds that it picks from. */
async function openGroups(
  groups: readonly GroupConfig[],
  all: Map<string, Outbound>,
  owner: AsyncDisposableStack,
  env: GroupsEnv,
): Promise<readonly Outbound[]> {
  const made: Outbound[] = [];
  const byName = new Map(groups.map((group) => [group.name, group]));
  const open = async (name: string): Promise<Outbound> => {
    const known = all.get(name);
    if (known !== undefined) return known;
    const group = byName.get(name);
    if (group === undefined) throw new Error(`'${name}' not found`);
    const settings = group.settings ?? DEFAULT_GROUP_SETTINGS;
    const used = settings.use.flatMap((provider) => env.providers.get(provider) ?? []);
    const sources: MemberSources = {
      listed: await openAll(group.members),
      included: await openAll(settings.included),
      provided: providedBy(used),
      ifNone: membersIfNone(await open(settings.emptyFallback), used),
    };
    const opened = owner.use(await openGroup(group, memberList(settings, sources), env));
    made.push(opened);
    all.set(name, opened);
    return opened;
  };
  const openAll = async (names: readonly string[]): Promise<Outbound[]> => {
    const opened: Outbound[] = [];
    for (const name of names) {
      opened.push(await open(name));
      if (env.slices.isOver) await env.slices.pause();
    }
    return opened;
  };
  for (const { name } of groups) await open(name);
  return made;
}

function openGroup(
  group: GroupConfig,
  members: () => readonly Outbound[],
  env: GroupsEnv,
): Promise<Outbound> {
  const [first] = group.settings?.use ?? [];
  const providerUrl = (first === undefined ? undefined : env.providers.get(first))?.testUrl ?? null;
  const { choices, health, lines } = env;
  const settings = liveSettings(group, providerUrl);
  return group.kind.open(group.options as never, {
    name: group.name,
    members,
    timesListed: timesListed(group.members),
    settings,
    choices,
    health,
    lines,
  });
}

/** All nodes of some providers as one array, which stays the same one until a provider changes. */
function providedBy(providers: readonly ProxyProvider[]): () => readonly Outbound[] {
  let parts: readonly (readonly Outbound[])[] = [];
  let joined: readonly Outbound[] = [];
  return () => {
    const now = providers.map((provider) => provider.nodes());
    if (now.length !== parts.length || now.some((part, at) => part !== parts[at])) {
      parts = now;
      joined = now.flat();
    }
    return joined;
  };
}
