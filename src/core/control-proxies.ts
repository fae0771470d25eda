/** Proxies, groups and their providers as the Controller shows and changes them; part of `control.ts`. */
import type { DelayState } from "./delays.ts";

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
