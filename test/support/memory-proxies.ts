/** Nodes, groups and providers in memory: they answer tests as they are told to, and what is selected stays selected. */
import type * as c from "#core/control.ts";
import type { DelaySample, DelayState } from "#core/delays.ts";
import { ApiError, DialError } from "#core/errors.ts";

const TEST_URL = "https://www.gstatic.com/generate_204";
export const NODE_NAMES = [
  "Node 1",
  "Node 2",
  "a/b",
  "50%",
  "x#y",
  "🇩🇪 Köln",
  "with spaces?",
  "%2F",
] as const;

/** How a node behaves when it is tested. */
export type Behaviour = { readonly delayMs: number } | { readonly fails: "timeout" | "refused" };

interface Node {
  readonly name: string;
  readonly type: string;
  behaviour: Behaviour;
  alive: boolean;
  history: DelaySample[];
  extra: Map<string, DelayState>;
}

interface GroupState {
  readonly type: "Selector" | "URLTest" | "LoadBalance";
  readonly members: string[];
  now: string;
  fixed: string;
}

export class MemoryProxies {
  readonly nodes = new Map<string, Node>();
  readonly groups = new Map<string, GroupState>();
  /** Names of the providers that were told to update, and could. */
  readonly updatedProviders: string[] = [];

  constructor() {
    for (const name of NODE_NAMES) this.#addNode(name, "Vless", { delayMs: 87 });
    this.#addNode("DIRECT", "Direct", { delayMs: 1 });
    this.#addNode("slow", "Vless", { fails: "timeout" });
    this.#addNode("closed", "Vless", { fails: "refused" });
    this.#addGroup("Proxy", "Selector", [...NODE_NAMES, "Auto", "DIRECT"]);
    this.#addGroup("Auto", "URLTest", ["Node 1", "Node 2", "slow"]);
    this.#addGroup("Balance", "LoadBalance", ["Node 1", "Node 2"]);
    this.#addGroup("Broken", "Selector", ["slow", "closed"]);
    this.#addGroup("GLOBAL", "Selector", ["DIRECT", ...NODE_NAMES, "Proxy", "Auto"]);
  }

  #addNode(name: string, type: string, behaviour: Behaviour): void {
    this.nodes.set(name, { name, type, behaviour, alive: true, history: [], extra: new Map() });
  }

  #addGroup(name: string, type: GroupState["type"], members: string[]): void {
    this.groups.set(name, { type, members, now: members[0] as string, fixed: "" });
    this.#addNode(name, type, { delayMs: 87 });
  }

  readonly control: c.ProxiesControl = {
    list: () => [...this.nodes.keys()].map((name) => this.#view(name) as c.ProxyView),
    get: (name) => this.#view(name),
    select: (name, member) => {
      const group = this.groups.get(name);
      if (group === undefined || !group.members.includes(member)) return false;
      group.now = member;
      if (group.type === "URLTest") group.fixed = member;
      return true;
    },
    unfix: (name) => {
      const group = this.groups.get(name);
      if (group !== undefined) group.fixed = "";
    },
    test: (name, test) => this.#test(this.groups.get(name)?.now ?? name, test),
    testGroup: async (name, test) => {
      const members = this.groups.get(name)?.members ?? [];
      const results = await Promise.allSettled(members.map((member) => this.#test(member, test)));
      return new Map(
        results.flatMap((result, at) =>
          result.status === "fulfilled" ? [[members[at] as string, result.value] as const] : [],
        ),
      );
    },
  };

  async #test(name: string, { url, timeoutMs }: c.DelayTest): Promise<number> {
    const node = this.nodes.get(name);
    if (node === undefined) throw new DialError("failed", `no proxy ${name}`);
    const { behaviour } = node;
    const delayMs = "delayMs" in behaviour ? behaviour.delayMs : 0;
    node.alive = delayMs > 0;
    node.history = [...node.history, { atMs: Date.now(), delayMs }].slice(-10);
    node.extra.set(url ?? TEST_URL, { alive: node.alive, history: node.history });
    if (timeoutMs <= 0) throw new DialError("timeout", "no time left");
    if ("fails" in behaviour) throw new DialError(behaviour.fails, `${name} does not answer`);
    return delayMs;
  }

  #view(name: string): c.ProxyView | null {
    const node = this.nodes.get(name);
    if (node === undefined) return null;
    const { type, alive, history, extra } = node;
    const off = { uot: false, xudp: false, tfo: false, mptcp: false, smux: false };
    const plain = { interfaceName: "", routingMark: 0, dialerProxy: "", providerName: "", unavailable: null };
    return {
      name,
      type,
      id: "",
      alive,
      history,
      extra,
      udp: true,
      ...off,
      ...plain,
      group: this.#group(name),
    };
  }

  #group(name: string): c.GroupView | null {
    const group = this.groups.get(name);
    if (group === undefined) return null;
    const pins = group.type === "URLTest";
    return {
      now: group.type === "LoadBalance" ? null : group.now,
      members: group.members,
      testUrl: group.type === "Selector" ? "" : TEST_URL,
      expectedStatus: group.type === "Selector" ? null : "*",
      fixed: pins ? group.fixed : null,
      hidden: false,
      icon: "",
      emptyFallback: "COMPATIBLE",
    };
  }

  readonly providers: c.ProxyProvidersControl = {
    list: () => ["remote/1", "default"].map((name) => this.#provider(name) as c.ProxyProviderView),
    get: (name) => this.#provider(name),
    node: (provider, name) =>
      Iterator.from(this.#provider(provider)?.proxies ?? []).find((node) => node.name === name) ?? null,
    update: async (name) => {
      if (name === "default") return;
      if (this.updatedProviders.includes(name))
        throw new ApiError(503, `provider ${name}: the server said 404`);
      this.updatedProviders.push(name);
    },
    healthCheck: async (name, signal) => {
      const nodes = this.#provider(name)?.proxies ?? [];
      const test = { url: null, timeoutMs: 5000, expected: null, signal };
      await Promise.allSettled(Array.from(nodes, (node) => this.#test(node.name, test)));
    },
    test: (_, node, test) => this.#test(node, test),
  };

  #provider(name: string): c.ProxyProviderView | null {
    if (name !== "remote/1" && name !== "default") return null;
    const isRemote = name === "remote/1";
    const nodes = [...NODE_NAMES, "slow"].map((node) => this.#view(node) as c.ProxyView);
    const subscription = {
      uploadBytes: 1,
      downloadBytes: 2,
      totalBytes: 3,
      expiresAtUnixSeconds: 1_900_000_000,
    };
    return {
      name,
      vehicleType: isRemote ? "HTTP" : "Compatible",
      proxies: nodes,
      testUrl: isRemote ? TEST_URL : "",
      expectedStatus: "*",
      updatedAtMs: isRemote ? 1_767_323_045_000 : null,
      subscription: isRemote ? subscription : null,
    };
  }
}
