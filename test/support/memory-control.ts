/** A core that lives in memory: what is selected stays selected, what is stored comes back. For tests of the API alone. */
import { createHash } from "node:crypto";
import { memoryConfigFile } from "./memory-config-file.ts";
import { memorySetup } from "./memory-setup.ts";
import type * as c from "#core/control.ts";
import { ApiError, ConfigError, DialError, ProtocolError } from "#core/errors.ts";
import type { GovernanceControl } from "#core/governance.ts";
import { SHOWN_KERNEL_DIRECT } from "./kernel-direct-view.ts";
import { MemoryGovernance } from "./memory-governance.ts";
import { MemoryProxies } from "./memory-proxies.ts";
import { LOG_LEVELS, type LogEvent, type LogEventLevel, type LogLevel } from "#core/log.ts";
import { connection } from "./connection-view.ts";

interface RuleState {
  readonly text: readonly [type: string, payload: string, target: string];
  disabled: boolean;
}

const INITIAL: c.ConfigsView = {
  port: 0,
  socksPort: 0,
  redirPort: 0,
  tproxyPort: 0,
  mixedPort: 7890,
  tun: {
    enable: true,
    device: "",
    stack: "gVisor",
    dnsHijack: ["0.0.0.0:53"],
    autoRoute: true,
    autoDetectInterface: true,
    fileDescriptor: 0,
    more: { mtu: 9000, gso: false, "kernel-direct-max-entries": 4096, "route-address": [] },
  },
  authentication: null,
  skipAuthPrefixes: null,
  lanAllowedIps: ["0.0.0.0/0", "::/0"],
  lanDisallowedIps: null,
  allowLan: false,
  bindAddress: "*",
  inboundTfo: false,
  inboundMptcp: false,
  mode: "rule",
  unifiedDelay: false,
  logLevel: "info",
  ipv6: true,
  interfaceName: "",
  routingMark: 0,
  geoxUrl: { geoIp: "https://geo.example/ip", mmdb: "", asn: "", geoSite: "" },
  geoAutoUpdate: false,
  geoUpdateInterval: 24,
  geodataMode: false,
  geodataLoader: "memconservative",
  geositeMatcher: "succinct",
  tcpConcurrent: false,
  findProcessMode: "strict",
  sniffing: false,
  globalUa: "weir",
  etagSupport: true,
  keepAliveIdle: 0,
  keepAliveInterval: 0,
  disableKeepAlive: false,
};

/** Everything a test wants to turn or look at. */
export class MemoryControl implements c.Control {
  readonly build = { version: "v0.1.0", managedProtocols: [] };
  readonly governance: GovernanceControl;
  readonly kernelDirect = SHOWN_KERNEL_DIRECT;
  readonly live = new Map<string, c.ConnectionView>();
  readonly stored = new Map<string, string>();
  readonly flushed: string[] = [];
  readonly restarts: string[] = [];
  settings: c.ConfigsView = INITIAL;
  ruleList: RuleState[] = [];
  uploadTotal = 1000;
  downloadTotal = 2000;
  dnsEnabled = true;
  geoFails = false;
  /** Thrown by the next read of the settings: a fault of the core. */
  fault: Error | null = null;
  readonly #proxies = new MemoryProxies();
  readonly nodes = this.#proxies.nodes;
  readonly groups = this.#proxies.groups;
  readonly updatedProviders = this.#proxies.updatedProviders;
  readonly proxies: c.ProxiesControl = this.#proxies.control;
  readonly proxyProviders: c.ProxyProvidersControl = this.#proxies.providers;
  /** What the log has said before. */
  past: LogEvent[] = [];
  readonly #watchers = new Set<{ readonly level: LogLevel; readonly on: (event: LogEvent) => void }>();

  constructor(governance: GovernanceControl = new MemoryGovernance()) {
    this.governance = governance;
    this.#loadRules("DOMAIN-SUFFIX,example.com,Proxy\nMATCH,,DIRECT");
  }

  #loadRules(text: string): void {
    this.ruleList = text.split("\n").map((line) => {
      const [type, payload, target] = line.split(",");
      if (type === undefined || payload === undefined || target === undefined) {
        throw new ConfigError(`rules: expected TYPE,payload,target, got ${JSON.stringify(line)}`);
      }
      return { text: [type, payload, target], disabled: false };
    });
  }

  memoryBytes(): number {
    return 41_943_040;
  }

  /** What the core would log. */
  emit(level: LogEventLevel, text: string): void {
    const rank = (name: LogLevel) => LOG_LEVELS.indexOf(name);
    for (const { level: wanted, on } of this.#watchers) {
      if (rank(level) >= rank(wanted)) on({ level, text, atMs: Date.now() });
    }
  }

  get watcherCount(): number {
    return this.#watchers.size;
  }

  readonly setup = memorySetup;
  readonly configs: c.ConfigsControl = {
    view: () => {
      const { fault } = this;
      this.fault = null;
      if (fault !== null) throw fault;
      return this.settings;
    },
    patch: async ({ tun = {}, ...rest }) => {
      const { enable, device, stack, ...more } = tun as Record<string, never>;
      const merged = { ...this.settings.tun, more: { ...this.settings.tun.more, ...more } };
      const named = Object.entries({ enable, device, stack }).filter(([, value]) => value !== undefined);
      this.settings = { ...this.settings, ...rest, tun: { ...merged, ...Object.fromEntries(named) } };
    },
    replace: async (source) => {
      if (source.kind === "path") throw new ConfigError(`${source.path} is outside the allowed folders`);
      if (source.kind === "payload") this.#loadRules(source.text);
    },
  };

  readonly rules: c.RulesControl = {
    list: () =>
      this.ruleList.map(({ text: [type, payload, target], disabled }, index) => {
        const never = { unavailable: null, hits: 0, lastHitAtMs: 0, misses: 0, lastMissAtMs: 0 };
        return { index, type, payload, target, size: -1, disabled, ...never };
      }),
    disable: (changes) => {
      for (const [index, disabled] of changes) {
        const rule = this.ruleList[index];
        if (rule !== undefined) rule.disabled = disabled;
      }
    },
    explain: async ({ destination }) => ({
      question: destination,
      steps: this.ruleList.map(({ text: [type, payload, target] }, index) => {
        const verdict = type === "MATCH" || destination.endsWith(payload) ? "yes" : "no";
        return { index, type, payload, target, verdict, note: `${destination} against ${payload}` };
      }),
      chain: ["DIRECT"],
    }),
  };

  readonly ruleProviders: c.RuleProvidersControl = {
    list: () => [this.#ruleProvider()],
    get: (name) => (name === "ads" ? this.#ruleProvider() : null),
    update: async () => {
      throw new ApiError(503, "provider ads: the server said 404");
    },
  };

  #ruleProvider(): c.RuleProviderView {
    const kind = { behavior: "Domain", format: "", vehicleType: "Inline" } as const;
    return { name: "ads", ...kind, ruleCount: 1, updatedAtMs: null, payload: ["ads.example"] };
  }

  readonly connections: c.ConnectionsControl = this.#connections();

  #connections(): c.ConnectionsControl {
    const { live } = this;
    return {
      get size() {
        return live.size;
      },
      entries: () => live.values(),
      ended: () => [],
      totals: () => ({ uploadBytes: this.uploadTotal, downloadBytes: this.downloadTotal }),
      close: (id) => live.delete(id),
      closeAll: () => live.clear(),
    };
  }

  /** Adds a live session to look at. */
  connect(host: string): c.ConnectionView {
    const entry = connection(host);
    this.live.set(entry.metadata.id, entry);
    return entry;
  }

  readonly logs: c.LogsControl = {
    recent: (level, count) => (level === "silent" || count === 0 ? [] : this.past.slice(-count)),
    watch: (level, on) => {
      const watcher = { level, on };
      if (level !== "silent") this.#watchers.add(watcher);
      return { [Symbol.dispose]: () => void this.#watchers.delete(watcher) };
    },
  };

  readonly dns: c.DnsControl = this.#dns();

  #dns(): c.DnsControl {
    const isEnabled = () => this.dnsEnabled;
    return {
      get enabled() {
        return isEnabled();
      },
      query: async (name, type) => {
        if (name === "broken.example.") throw new DialError("timeout", "no upstream answered");
        const answers = name.startsWith("empty.")
          ? []
          : [{ name, type, ttlSeconds: 300, data: "203.0.113.9" }];
        const flags = { truncated: false, recursionDesired: true, recursionAvailable: true };
        const rest = { authenticData: false, checkingDisabled: false, authority: [], additional: [] };
        return { status: 0, ...flags, ...rest, answers };
      },
      exchange: async (message) => {
        if (message.length < 12) throw new ProtocolError("a DNS message has at least 12 bytes");
        const answer = Uint8Array.from(message);
        answer[2] = 0x80 | (answer[2] ?? 0);
        return { message: answer, ttlSeconds: 300 };
      },
    };
  }

  readonly caches: c.CachesControl = {
    flushFakeIp: async () => void this.flushed.push("fake-ip"),
    flushDns: () => void this.flushed.push("dns"),
  };

  readonly storage: c.StorageControl = {
    get: (key) => this.stored.get(key) ?? null,
    put: async (key, json) => void this.stored.set(key, json),
    delete: async (key) => void this.stored.delete(key),
  };

  readonly configFile = memoryConfigFile();

  readonly backup: c.BackupControl = { make: async () => Buffer.from("a backup") };

  readonly restore: c.RestoreControl = {
    look: async (file) => restoreView(file),
    stage: async (file, _key, sum) => {
      if (restoreView(file).sum !== sum) throw new ApiError(400, "it is another file");
      return () => void this.restarts.push("restore");
    },
  };

  readonly updates: c.UpdatesControl = {
    view: () => ({ version: this.build.version, isConfigured: false, byController: false }),
    look: async () => {
      throw new ApiError(500, "update error: the configuration has no block update");
    },
    update: async () => {
      throw new ApiError(500, "update error: the configuration has no block update");
    },
  };

  readonly upkeep: c.UpkeepControl = {
    prepareRestart: async () => () => void this.restarts.push("restart"),
    upgradeUi: async () => {
      throw new ApiError(500, "external-ui is not configured");
    },
    updateGeo: async () => {
      if (this.geoFails) throw new ApiError(500, "an update is already running");
      this.flushed.push("geo");
    },
  };
}

function restoreView(file: Uint8Array): c.RestoreView {
  return {
    sum: createHash("sha256").update(file).digest("hex"),
    createdAtMs: 1_750_000_000_000,
    version: "1.0.0",
    configuration: null,
    isSameConfiguration: true,
    isOtherSignIn: false,
    isOtherAddress: false,
    stores: [{ role: "users", path: "users.db", counts: { users: 2 } }],
    listeners: [{ name: "edge", type: "vless" }],
    users: 2,
    tokens: 0,
    choices: 0,
    lost: { listeners: [], users: ["bob"], tokens: [] },
  };
}
