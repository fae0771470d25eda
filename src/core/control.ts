/**
 * What the Controller API reads and commands: plain views and a handful of verbs, one small interface a resource. The
 * App implements it and stays the same object across reloads; views are snapshots that the caller never edits.
 * Names and units here are ours; the API layer turns them into the field names of the ecosystem.
 *
 * Errors: `ApiError` says its own status; `ConfigError` becomes 400 with its message; `DialError` with the reason
 * `timeout` 504, any other 503; everything else 500 with a neutral text, the cause going to the log only.
 */
import type { ConfigsControl } from "./control-configs.ts";
import type { DelayState } from "./delays.ts";
import type { GovernanceControl } from "./governance.ts";
import type { KernelDirectControl } from "./kernel-direct.ts";
import type { LogEvent, LogLevel } from "./log.ts";
import type { DnsMode } from "./router.ts";
import type { ProcessInfo } from "./rule.ts";
import type { Destination, Ip, Metadata } from "./session.ts";

export interface Control {
  readonly build: BuildView;
  readonly configs: ConfigsControl;
  readonly proxies: ProxiesControl;
  readonly proxyProviders: ProxyProvidersControl;
  readonly rules: RulesControl;
  readonly ruleProviders: RuleProvidersControl;
  readonly connections: ConnectionsControl;
  readonly logs: LogsControl;
  readonly dns: DnsControl;
  readonly caches: CachesControl;
  readonly storage: StorageControl;
  readonly upkeep: UpkeepControl;
  readonly governance: GovernanceControl;
  readonly kernelDirect: KernelDirectControl;
  /** Resident set of the process in bytes. */
  memoryBytes(): number;
}

export interface BuildView {
  /** Shown as it is. Must not contain `sing-box` or `honk`: dashboards would switch to another dialect. */
  readonly version: string;
}

// --- configuration ---------------------------------------------------------------------------------------------

export type * from "./control-configs.ts";

// --- proxies, groups and their providers -----------------------------------------------------------------------

export interface ProxyView extends DelayState {
  readonly name: string;
  /** API spelling: Direct, Socks5, Selector … */
  readonly type: string;
  /** Opaque; "" where there is none. */
  readonly id: string;
  /** By test URL. */
  readonly extra: ReadonlyMap<string, DelayState>;
  /** For a group: what its current choice can do. */
  readonly udp: boolean;
  readonly uot: boolean;
  readonly xudp: boolean;
  readonly tfo: boolean;
  readonly mptcp: boolean;
  readonly smux: boolean;
  readonly interfaceName: string;
  readonly routingMark: number;
  readonly dialerProxy: string;
  readonly providerName: string;
  /** Why it cannot be used, or leads elsewhere than the file says; null: it can. */
  readonly unavailable: string | null;
  /** Null for a leaf. */
  readonly group: GroupView | null;
}

export interface GroupView {
  /** Null where the kind has no current member (LoadBalance, Relay). */
  readonly now: string | null;
  /** Names as they are now, providers included; an empty group shows its empty fallback. */
  readonly members: readonly string[];
  /** "" for a Selector or Relay on the default URL. */
  readonly testUrl: string;
  /** Null for a Selector or Relay. */
  readonly expectedStatus: string | null;
  /** The pinned member, "" without one; null where the kind cannot pin (Selector, LoadBalance, Relay). */
  readonly fixed: string | null;
  readonly hidden: boolean;
  readonly icon: string;
  readonly emptyFallback: string;
}

export interface DelayTest {
  /** Null: the node's or the group's own test URL. */
  readonly url: string | null;
  /** The clock starts before the dial. Zero or less has run out already. */
  readonly timeoutMs: number;
  /** Statuses that count as alive, inclusive ranges; null: all. */
  readonly expected: readonly (readonly [from: number, to: number])[] | null;
  /** The client has gone: stop. */
  readonly signal: AbortSignal;
}

export interface ProxiesControl {
  /** Top-level proxies, groups and built-ins in file order; never the nodes of providers. Each is made when it is read. */
  list(): Iterable<ProxyView>;
  get(name: string): ProxyView | null;
  /** Makes `member` the choice of a Selector or pins it (URLTest, Fallback), and stores that. False: no such member. */
  select(group: string, member: string): boolean;
  /** Takes the pin of a URLTest or Fallback group away; nothing where there is none. */
  unfix(group: string): void;
  /** Whole milliseconds, at least 1. For a group its current member is tested. Throws `DialError`. */
  test(name: string, test: DelayTest): Promise<number>;
  /** Tests all members at once; answers with those that succeeded. A URLTest group uses its own URL. */
  testGroup(group: string, test: DelayTest): Promise<ReadonlyMap<string, number>>;
}

export interface ProxyProviderView {
  readonly name: string;
  readonly vehicleType: "HTTP" | "File" | "Inline" | "Compatible";
  /** Made when they are read, once. */
  readonly proxies: Iterable<ProxyView>;
  readonly testUrl: string;
  readonly expectedStatus: string;
  /** Null: never. */
  readonly updatedAtMs: number | null;
  readonly subscription: SubscriptionInfo | null;
}

export interface SubscriptionInfo {
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly totalBytes: number;
  readonly expiresAtUnixSeconds: number;
}

export interface ProxyProvidersControl {
  /** Configured providers, one Compatible provider per group with own members, and Compatible `default`. */
  list(): readonly ProxyProviderView[];
  get(name: string): ProxyProviderView | null;
  /** One node; null where there is no such provider, or no such node of it. */
  node(provider: string, name: string): ProxyView | null;
  /** Loads anew; returns at once for Inline and Compatible. Any failure is an `ApiError` 503. */
  update(name: string): Promise<void>;
  /** Resolves when every node has been tested; failing nodes are no error. */
  healthCheck(name: string, signal: AbortSignal): Promise<void>;
  /** As `ProxiesControl.test`, for a node of a provider. */
  test(provider: string, node: string, test: DelayTest): Promise<number>;
}

// --- rules -----------------------------------------------------------------------------------------------------

export interface RuleView {
  readonly index: number;
  /** API spelling: `DomainSuffix`. */
  readonly type: string;
  readonly payload: string;
  readonly target: string;
  /** Number of records of a GEOIP or GEOSITE rule; -1 for every other. */
  readonly size: number;
  readonly disabled: boolean;
  /** Why it matches nothing: `database missing`; null: it can match. */
  readonly unavailable: string | null;
  readonly hits: number;
  /** 0: never. */
  readonly lastHitAtMs: number;
  readonly misses: number;
  /** 0: never. */
  readonly lastMissAtMs: number;
}

/** What would happen to a session: asked by people who wonder why. */
export interface ExplainQuestion {
  readonly network: "tcp" | "udp";
  /** A name, an address literal, `host:port` or a URL. */
  readonly destination: string;
  /** Where the destination says none; null: as its URL's scheme says, or 443. */
  readonly port: number | null;
  readonly source: string | null;
  readonly inbound: string | null;
}

export interface ExplainView {
  /** What was asked, as it was understood. */
  readonly question: string;
  /** The rules that were looked at, in order; the last one decided where its verdict is `yes`. */
  readonly steps: readonly {
    readonly index: number;
    readonly type: string;
    readonly payload: string;
    readonly target: string;
    readonly verdict: "yes" | "no" | "unknown";
    /** One sentence. */
    readonly note: string;
  }[];
  /** From the rule's target down to the leaf. */
  readonly chain: readonly string[];
}

export interface RulesControl {
  /** In file order; each is made when it is read. */
  list(): Iterable<RuleView>;
  /** True: the rule never matches. Indexes out of range are ignored. Not persistent; a reload clears it. */
  disable(changes: ReadonlyMap<number, boolean>): void;
  /** `ApiError` 400 where the question cannot be understood. */
  explain(question: ExplainQuestion): Promise<ExplainView>;
}

export interface RuleProviderView {
  readonly name: string;
  readonly behavior: "Domain" | "IPCIDR" | "Classical";
  /** "" for inline. */
  readonly format: "YamlRule" | "TextRule" | "MrsRule" | "";
  readonly vehicleType: "HTTP" | "File" | "Inline";
  readonly ruleCount: number;
  /** Null: never. */
  readonly updatedAtMs: number | null;
  /** Inline only. */
  readonly payload: readonly string[] | null;
}

export interface RuleProvidersControl {
  list(): readonly RuleProviderView[];
  get(name: string): RuleProviderView | null;
  /** Loads anew. Any failure is an `ApiError` 503. */
  update(name: string): Promise<void>;
}

// --- connections and traffic -----------------------------------------------------------------------------------

/** A live session, read at once: a view may change with the session. `metadata` is the same object as long as it lives. */
export interface ConnectionView {
  readonly metadata: Metadata;
  /** As long as this is the same object, `remoteHost` and the counters alone may change; null: everything may. */
  readonly settled: object | null;
  /** What was decided on; before that, what the client asked for. */
  readonly destination: Destination;
  /** "" unless sniffing found a name. */
  readonly sniffedHost: string;
  /** Resolved or literal; null when unknown. */
  readonly destinationIp: Ip | null;
  readonly dnsMode: DnsMode;
  readonly process: ProcessInfo | null;
  /** Peer host or address of the outbound socket, without the port; "" before the dial. */
  readonly remoteHost: string;
  /** Null: never looked up. */
  readonly sourceGeoIp: readonly string[] | null;
  readonly destinationGeoIp: readonly string[] | null;
  readonly sourceAsn: string;
  readonly destinationAsn: string;
  /** From the rule's target down to the leaf, the leaf last. Empty before the decision. */
  readonly chain: readonly string[];
  /** The provider of each element of `chain`, "" where there is none. */
  readonly providerChain: readonly string[];
  /** Null: mode global or direct, no match, or the listener named its target. */
  readonly rule: { readonly apiType: string; readonly payload: string } | null;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

export interface ConnectionsControl {
  readonly size: number;
  /** Iterates the live table in any order; nothing is copied. */
  entries(): Iterable<ConnectionView>;
  /** Bytes of all sessions since start; never decrease. */
  totals(): { readonly uploadBytes: number; readonly downloadBytes: number };
  /** Closes one; false where there is none. */
  close(id: string): boolean;
  closeAll(): void;
}

export interface LogsControl {
  /**
   * Calls back with every event at `level` or above, whatever the configured level, until disposed. `on` never throws
   * and returns at once. Level `silent` gets no events.
   */
  watch(level: LogLevel, on: (event: LogEvent) => void): Disposable;
  /** The newest `count` of the lines that were printed, at `level` or above, in their order; a bounded number is kept. */
  recent(level: LogLevel, count: number): readonly LogEvent[];
}

// --- DNS, caches, storage --------------------------------------------------------------------------------------

export interface DnsRecordView {
  /** Fully qualified, with the last dot. */
  readonly name: string;
  readonly type: number;
  readonly ttlSeconds: number;
  /** Presentation form. */
  readonly data: string;
}

export interface DnsAnswerView {
  readonly status: number;
  readonly truncated: boolean;
  readonly recursionDesired: boolean;
  readonly recursionAvailable: boolean;
  readonly authenticData: boolean;
  readonly checkingDisabled: boolean;
  readonly answers: readonly DnsRecordView[];
  readonly authority: readonly DnsRecordView[];
  readonly additional: readonly DnsRecordView[];
}

export interface DnsControl {
  /** The `dns` section is switched on. */
  readonly enabled: boolean;
  /** By the resolver only: no hosts, no fake-IP. `name` ends with a dot. Throws where upstreams fail. */
  query(name: string, type: number, signal: AbortSignal): Promise<DnsAnswerView>;
  /** A DNS message in wire form through the full chain (hosts, fake-IP, mapping). Throws `ProtocolError` on nonsense. */
  exchange(message: Uint8Array): Promise<DnsExchangeView>;
}

export interface DnsExchangeView {
  /** In wire form. */
  readonly message: Uint8Array;
  /** How long it may be kept: the smallest TTL. */
  readonly ttlSeconds: number;
}

export interface CachesControl {
  /** Does nothing without fake-IP. Throws `StoreError`. */
  flushFakeIp(): Promise<void>;
  flushDns(): void;
}

/** A free key-value area of dashboards, kept in the cache file. Values are JSON text of at most 1 MiB. */
export interface StorageControl {
  get(key: string): string | null;
  /** Throws `ApiError` 413 where the area is full. */
  put(key: string, json: string): Promise<void>;
  delete(key: string): Promise<void>;
}

// --- upkeep ----------------------------------------------------------------------------------------------------

export interface UpkeepControl {
  /** Checks that a restart can work (throws otherwise) and answers with what does it, called once the client knows; it never throws. */
  prepareRestart(): Promise<() => void>;
  /** Fetches another build; answers with the restart. `ApiError` 500 `update error: …` where there is nothing to do. */
  upgrade(options: { readonly channel: string; readonly force: boolean }): Promise<() => void>;
  /** Downloads `external-ui-url` into the UI folder. `ApiError` 500 where none is configured. */
  upgradeUi(): Promise<void>;
  /** Downloads the geodata files in use, verifies and swaps. `ApiError` 500, also when an update is running. */
  updateGeo(): Promise<void>;
}
