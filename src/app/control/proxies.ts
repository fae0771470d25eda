import { DEFAULT_GROUP_SETTINGS, type GroupConfig, type ProxyConfig } from "#config/config.ts";
import type {
  DelayTest,
  GroupView,
  ProxiesControl,
  ProxyProvidersControl,
  ProxyView,
} from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import type { Health } from "#core/group.ts";
import { isSelectable } from "#core/group.ts";
import { isGroup, type Group, type Outbound } from "#core/outbound.ts";
import { groupFault } from "#runtime/inert.ts";
import { DEFAULT_TEST_URL, liveSettings } from "#runtime/members.ts";
import type { Outbounds } from "#runtime/outbounds.ts";
import type { ProxyProviders } from "#runtime/proxy-providers.ts";

/** What the views are made of; `outbounds` answers with those of the runtime in force. */
export interface ProxiesEnv {
  readonly health: Health;
  outbounds(): Outbounds;
  providers(): ProxyProviders;
  /** Called before one is, and throws where it may not be. */
  choosing(): void;
  /** Called after a member of a group was selected. */
  chosen(): void;
}

/** Proxies, groups and built-ins: how they look, what is chosen, how long they take. */
export function proxiesControl(env: ProxiesEnv): ProxiesControl {
  const { health, outbounds } = env;
  const find = (name: string): Outbound => {
    const found = outbounds().all.get(name);
    if (found === undefined) throw new ApiError(404, "Resource not found");
    return found;
  };
  return {
    list: () =>
      listed(outbounds())
        .values()
        .map((outbound) => viewOf(outbound, env)),
    get(name) {
      const outbound = outbounds().all.get(name);
      return outbound === undefined ? null : viewOf(outbound, env);
    },
    select(group, member) {
      const outbound = find(group);
      env.choosing();
      const chosen = isSelectable(outbound) && outbound.select(member);
      env.chosen();
      return chosen;
    },
    unfix(group) {
      const outbound = find(group);
      env.choosing();
      if (isSelectable(outbound)) outbound.unpin?.();
      env.chosen();
    },
    test: (name, test) => testOne(find(name), test, health),
    async testGroup(name, test) {
      const group = find(name);
      if (!isGroup(group)) throw new ApiError(404, "Resource not found");
      if (isSelectable(group)) group.unpin?.();
      const own = group.type === "URLTest" ? settingsOf(group.name, outbounds()).url : null;
      return testMembers(group, own === null ? test : { ...test, url: own }, health);
    },
  };
}

/** One Compatible provider per group with members of its own, and `default` with everything of GLOBAL. */
export function compatibleProviders(env: ProxiesEnv): ProxyProvidersControl {
  const { health, outbounds } = env;
  const providerOf = (name: string): Group | null => {
    const found = outbounds().all.get(name === "default" ? "GLOBAL" : name);
    return found !== undefined && isGroup(found) ? found : null;
  };
  const list = () => {
    const groups = listed(outbounds())
      .filter(isGroup)
      .filter(({ name }) => name !== "GLOBAL" && hasOwnMembers(outbounds().configOf.get(name)));
    return ["default", ...groups.map(({ name }) => name)]
      .map((name) => get(name))
      .filter((view) => view !== null);
  };
  const get: ProxyProvidersControl["get"] = (name) => {
    const group = providerOf(name);
    if (group === null) return null;
    const { url } = settingsOf(group.name, outbounds());
    return {
      name,
      vehicleType: "Compatible",
      proxies: group.members.values().map((member) => viewOf(member, env)),
      testUrl: name === "default" ? "" : url,
      expectedStatus: "*",
      updatedAtMs: null,
      subscription: null,
    };
  };
  const memberOf = (provider: string, node: string) =>
    providerOf(provider)?.members.find(({ name }) => name === node);
  return {
    list,
    get,
    node(provider, name) {
      const member = memberOf(provider, name);
      return member === undefined ? null : viewOf(member, env);
    },
    async update() {},
    async healthCheck(name, signal) {
      const group = providerOf(name);
      if (group === null) throw new ApiError(404, "Resource not found");
      const { url, timeoutMs, expected } = settingsOf(group.name, outbounds());
      await testMembers(group, { url, timeoutMs, expected, signal }, health);
    },
    async test(provider, node, test) {
      const member = memberOf(provider, node);
      if (member === undefined) throw new ApiError(404, "Resource not found");
      return testOne(member, test, health);
    },
  };
}

/** A group of nothing but providers' nodes is shown by those providers. */
function hasOwnMembers(config: ProxyConfig | GroupConfig | undefined): boolean {
  return isGroupConfig(config) && config.members.length + (config.settings?.included.length ?? 0) > 0;
}

/** Built-ins first, then the proxies and the groups in file order. */
function listed({ all, configOf }: Outbounds): readonly Outbound[] {
  const builtIns = [...all.values()].filter(({ name }) => !configOf.has(name));
  const named = [...configOf.keys()].flatMap((name) => all.get(name) ?? []);
  return [...builtIns, ...named];
}

function settingsOf(group: string, { configOf }: Outbounds) {
  const config = configOf.get(group);
  if (!isGroupConfig(config)) throw new RangeError(`${group} is no group of the configuration`);
  return liveSettings(config, null);
}

function isGroupConfig(config: ProxyConfig | GroupConfig | undefined): config is GroupConfig {
  return config !== undefined && "kind" in config;
}

/** The server that a node's lines in the file name; "" for groups, built-ins and what has none. */
export function serverOf(outbound: Outbound, { outbounds, providers }: ProxiesEnv): string {
  const config = providers().originOf(outbound)?.config ?? outbounds().configOf.get(outbound.name);
  if (config === undefined || isGroupConfig(config)) return "";
  const { server }: { readonly server?: unknown } = config.options ?? {};
  return typeof server === "string" ? server : "";
}

export function viewOf(
  outbound: Outbound,
  { health: { delays }, outbounds, providers }: ProxiesEnv,
): ProxyView {
  const origin = providers().originOf(outbound);
  const config = origin?.config ?? outbounds().configOf.get(outbound.name);
  const proxy = isGroupConfig(config) ? undefined : config;
  const options = (proxy?.options ?? {}) as Readonly<Record<string, unknown>>;
  return {
    name: outbound.name,
    type: outbound.type,
    id: "",
    ...delays.of(outbound.name),
    extra: delays.urlsOf(outbound.name),
    udp: outbound.networks.has("udp"),
    uot: options["udp-over-tcp"] === true,
    xudp: options["packet-encoding"] === "xudp" || options["xudp"] === true,
    tfo: false,
    mptcp: false,
    smux: (options["smux"] as { enabled?: boolean } | undefined)?.enabled === true,
    interfaceName: proxy?.interfaceName ?? "",
    routingMark: proxy?.routingMark ?? 0,
    dialerProxy: proxy?.dialerProxy ?? "",
    providerName: origin?.provider ?? "",
    unavailable:
      isGroup(outbound) && isGroupConfig(config) ? groupFault(outbound, config) : (outbound.inert ?? null),
    group: isGroup(outbound) ? groupView(outbound, isGroupConfig(config) ? config : null) : null,
  };
}

function groupView(group: Group, config: GroupConfig | null): GroupView {
  const settings = config?.settings ?? DEFAULT_GROUP_SETTINGS;
  const url = settings.url ?? DEFAULT_TEST_URL;
  const tests = group.type !== "Selector" && group.type !== "Relay";
  const pins = isSelectable(group) && tests;
  return {
    now: picksEach(group) ? null : group.pick(null).name,
    members: group.members.map(({ name }) => name),
    testUrl: !tests && url === DEFAULT_TEST_URL ? "" : url,
    expectedStatus: !tests ? null : statusText(settings.expectedStatus),
    fixed: pins ? (group.pinned ?? "") : null,
    hidden: settings.hidden,
    icon: settings.icon,
    emptyFallback: settings.emptyFallback,
  };
}

/** Kinds that have no member of their own between sessions. */
function picksEach({ type }: Group): boolean {
  return type === "LoadBalance" || type === "Relay";
}

export function statusText(ranges: readonly { readonly from: number; readonly to: number }[]): string {
  if (ranges.some(({ from, to }) => from <= 100 && to >= 599)) return "*";
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)).join("/");
}

export function testOne(
  member: Outbound,
  { url, timeoutMs, expected, signal }: DelayTest,
  health: Health,
): Promise<number> {
  return health.test(member, { url: url ?? DEFAULT_TEST_URL, timeoutMs, expected }, signal);
}

/** All at once; those that succeeded. */
async function testMembers(
  group: Group,
  test: DelayTest,
  health: Health,
): Promise<ReadonlyMap<string, number>> {
  const delays = new Map<string, number>();
  const one = async (member: Outbound): Promise<void> => {
    delays.set(member.name, await testOne(member, test, health));
  };
  await Promise.allSettled(group.members.map(one));
  return delays;
}
