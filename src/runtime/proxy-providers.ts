import { isDeepStrictEqual } from "node:util";
import { findCircles } from "#config/circles.ts";
import type { Config, ProxyConfig } from "#config/config.ts";
import type { ProxyProviderConfig } from "#config/sections/index.ts";
import type { SubscriptionInfo } from "#core/control.ts";
import { DialError } from "#core/errors.ts";
import type { GroupSettings, Health } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Slices } from "#core/slices.ts";
import { HealthCheck } from "#groups/health-check.ts";
import type { Host } from "#host/host.ts";
import { LiveProxyProvider } from "#providers/proxy-provider.ts";
import { readUserInfo } from "#providers/user-info.ts";
import type { Steps } from "#lib/steps.ts";
import { logSummary } from "#config/summary.ts";
import { etagBook, type Fetch } from "./downloads.ts";
import { DEFAULT_TEST_URL, testPlan } from "./members.ts";
import { contentIn } from "#documents/node-list.ts";
import { readItems, readRawNodes } from "./nodes.ts";
import { resourceEnv, sourceOf } from "./rule-providers.ts";

export type NodeProvider = LiveProxyProvider<ProxyConfig>;

/** Where a node comes from, for display. */
export interface NodeOrigin {
  readonly provider: string;
  readonly config: ProxyConfig;
}

/** How many nodes a work whose steps are short looks at before it may pause. */
const NODES_AT_ONCE = 256;

/** The distinct nodes and groups that nodes dial through. */
function* dialersOf(nodes: readonly ProxyConfig[]): Steps<readonly string[]> {
  const dialers = new Set<string>();
  for (const [at, { dialerProxy }] of nodes.entries()) {
    if (dialerProxy !== null) dialers.add(dialerProxy);
    if (at % NODES_AT_ONCE === 0) yield;
  }
  return [...dialers];
}

/** The proxy providers of one runtime. Their contents go over from the runtime before; their nodes are opened anew. */
export class ProxyProviders implements AsyncDisposable {
  readonly all = new Map<string, NodeProvider>();
  readonly configs: ReadonlyMap<string, ProxyProviderConfig>;
  readonly #config: Config;
  readonly #host: Host;
  readonly #health: Health;
  readonly #checks = new Map<string, HealthCheck[]>();
  readonly #origins = new WeakMap<Outbound, NodeOrigin>();
  /** What the nodes of a provider dial through. */
  readonly #dialers = new Map<string, readonly string[]>();
  /** At the start there is nothing yet that a pause could hold up, and threads would make it longer. */
  #isServing = false;
  /** Of all providers together: many that are refreshed at once take one turn each. */
  readonly #slices: Slices;
  #open: ((node: ProxyConfig) => Promise<Outbound>) | null = null;

  constructor(config: Config, host: Host, health: Health, fetch: Fetch) {
    this.configs = config.proxyProviders;
    this.#config = config;
    this.#host = host;
    this.#health = health;
    this.#slices = host.slices;
    for (const [name, item] of config.proxyProviders) {
      this.#warnOfCircle(name, [item.override.dialerProxy ?? item.dialerProxy]);
      this.all.set(name, this.#made(name, item, fetch));
    }
  }

  /** Reads the files on disk and opens their nodes; downloads nothing. `open` makes an outbound of a node. */
  async load(previous: ProxyProviders | null, open: (node: ProxyConfig) => Promise<Outbound>): Promise<void> {
    this.#open = open;
    this.#isServing = previous !== null;
    await Promise.all(
      [...this.all].map(async ([name, provider]) => {
        const before = previous?.all.get(name);
        const same = isDeepStrictEqual(previous?.configs.get(name), this.configs.get(name));
        if (before === undefined || !same || before.nodes().length === 0) await provider.resource.load();
        else await provider.inherit(before);
      }),
    );
  }

  activate(): void {
    this.#isServing = true;
    for (const [name, { resource }] of this.all) {
      resource.activate();
      this.#checks.set(name, this.#checksOf(name));
    }
  }

  /** Ends refreshing and testing; the nodes stay in use. May be repeated. */
  async quiet(): Promise<void> {
    const checks = [...this.#checks.values()].flat();
    this.#checks.clear();
    const resources = [...this.all.values()].map(({ resource }) => resource[Symbol.asyncDispose]());
    await Promise.all([...resources, ...checks.map((check) => check[Symbol.asyncDispose]())]);
  }

  originOf(outbound: Outbound): NodeOrigin | null {
    return this.#origins.get(outbound) ?? null;
  }

  /** Of the nodes of all providers. */
  nodeNames(): ReadonlySet<string> {
    return new Set(this.all.values().flatMap((provider) => provider.nodes().map(({ name }) => name)));
  }

  subscriptionOf(provider: string): SubscriptionInfo | null {
    const text = this.#host.cache.get("subscriptioninfo", provider);
    return text === null ? null : readUserInfo(text);
  }

  /** Tests every node once. */
  async healthCheck(provider: string, signal: AbortSignal): Promise<void> {
    const config = this.configs.get(provider)?.healthCheck;
    const plan = testPlan(config?.url ?? DEFAULT_TEST_URL, config?.timeout ?? 5000, config?.expectedStatus);
    const nodes = this.all.get(provider)?.nodes() ?? [];
    await Promise.all(
      nodes.map((node) =>
        this.#health.test(node, plan, signal).catch((error: unknown) => {
          if (!(error instanceof DialError)) throw error; // a node that fails is a result
        }),
      ),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.quiet();
    await Promise.all([...this.all.values()].map((provider) => provider[Symbol.asyncDispose]()));
  }

  #made(name: string, item: ProxyProviderConfig, fetch: Fetch): NodeProvider {
    const { files, cache } = this.#host;
    const source = sourceOf(item, `proxy provider ${name}`);
    const { healthCheck, payload } = item;
    const slices = this.#slices;
    const checked = async (nodes: readonly ProxyConfig[]) => {
      this.#warnOfCircle(name, await slices.run(dialersOf(nodes)));
      return nodes;
    };
    return new LiveProxyProvider<ProxyConfig>(
      { name, source, testUrl: healthCheck?.enable === true ? (healthCheck.url ?? DEFAULT_TEST_URL) : null },
      {
        read: async (bytes) => checked(await this.#read(bytes, item)),
        readPayload:
          payload.length === 0 ? null : async () => checked(await readRawNodes(payload, item, files, slices)),
        pause: () => slices.pause(),
        open: (node) => this.#openNode(node),
        onOpened: (config, outbound) => this.#origins.set(outbound, { provider: name, config }),
        // Lazy or not: the groups have nothing else to choose new nodes by.
        onChange: () => {
          this.#host.invalidateRoutes();
          for (const check of this.#checks.get(name) ?? []) void check.run();
        },
      },
      {
        ...resourceEnv(
          item,
          source,
          this.#host,
          fetch,
          this.#config.general.etagSupport ? etagBook(cache) : null,
        ),
        onUserInfo: (text) => cache.set("subscriptioninfo", name, text),
      },
    );
  }

  /** Reports the parts of the content that cannot be used; the others can. */
  async #read(bytes: Uint8Array, item: ProxyProviderConfig): Promise<readonly ProxyConfig[]> {
    const { files, log, documents } = this.#host;
    const content = this.#isServing ? await documents.readNodes(bytes) : contentIn(bytes);
    const { nodes, warnings, skipped } = await readItems(content, item, files, this.#slices);
    const title = `proxy provider ${item.name}`;
    if (skipped !== null) log.warning(`${title}: ${skipped}`);
    logSummary(log, `${title}: ${item.path}`, warnings);
    return nodes;
  }

  #openNode(node: ProxyConfig): Promise<Outbound> {
    if (this.#open === null) throw new Error("nodes were read before they can be opened");
    return this.#open(node);
  }

  /** One check per test URL: the provider's own, and those of the groups that use it, which have no tests of their own. */
  #checksOf(name: string): HealthCheck[] {
    const config = this.configs.get(name)?.healthCheck;
    const provider = this.all.get(name);
    if (config?.enable !== true || provider === undefined) return [];
    const ofGroups = this.#config.groups.flatMap(({ settings }) =>
      settings?.use.includes(name) === true && settings.url !== null ? [settings.url] : [],
    );
    return [...new Set([config.url ?? DEFAULT_TEST_URL, ...ofGroups])].map((url) => {
      const settings: GroupSettings = {
        ...testPlan(url, config.timeout, config.expectedStatus),
        intervalSeconds: config.interval,
        lazy: config.lazy,
        maxFailedTimes: Number.POSITIVE_INFINITY,
        disableUdp: false,
        defaultSelected: null,
      };
      const members = () => provider.nodes();
      const check = new HealthCheck({ name, members, settings, health: this.#health });
      void check.run();
      return check;
    });
  }

  /** A dial through these may come back to the provider; a dial that does fails, see `NodeDialers`. */
  #warnOfCircle(name: string, dialers: readonly string[]): void {
    const { proxies, groups } = this.#config;
    const wanted = dialers.filter((dialer) => dialer !== "");
    const members = new Map(groups.map((group) => [group.name, group]));
    const through = new Map(proxies.map((proxy) => [proxy.name, proxy.dialerProxy]));
    const next = (at: string): readonly string[] => {
      if (at.startsWith("\0")) return at === `\0${name}` ? wanted : (this.#dialers.get(at.slice(1)) ?? []);
      const group = members.get(at);
      if (group === undefined) return [through.get(at) ?? ""].filter((to) => to !== "");
      const { use = [], included = [] } = group.settings ?? {};
      return [...group.members, ...included, ...use.map((provider) => `\0${provider}`)];
    };
    const [circle] = wanted.length === 0 ? [] : findCircles([`\0${name}`], next);
    if (circle?.includes(`\0${name}`) === true)
      this.#host.log.warning(
        `proxy provider ${name}: dialer-proxy ${circle.at(1)} leads back to the provider itself; while it picks one of the nodes that dial through it, these cannot be dialled`,
      );
    this.#dialers.set(name, wanted);
  }
}
