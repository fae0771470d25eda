/** What a file means, as one frozen value. Made by `parseConfig`; everything else only reads it. */
import type { Cidr } from "#net/address/cidr.ts";
import type { GroupKind } from "#core/group.ts";
import type { Protocol } from "#core/protocol.ts";
import type { RuleOptions, RuleType } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import type { Range } from "#core/ranges.ts";
import type { Account } from "#core/inbound.ts";
import type { LogLevel } from "#core/log.ts";
import type { FileUse } from "./shape.ts";
import type { Sections } from "./sections/index.ts";
import type { TunListenerConfig } from "./tun-listeners.ts";
import type { Diagnostic } from "./report.ts";
import type { IpVersion } from "./proxy-fields.ts";
import type { TunnelConfig } from "./tunnels.ts";

export type Mode = "rule" | "global" | "direct";

/** A listener of `listeners`, or the one of a top-level port (`DEFAULT-MIXED` and the like). */
export interface ListenerConfig {
  readonly name: string;
  readonly protocol: Protocol;
  readonly hosts: readonly Ip[];
  readonly ports: readonly number[];
  readonly ruleList: string | null;
  readonly target: string | null;
  readonly routingMark: number;
  /** Output of the protocol's inbound schema: plain data. */
  readonly options: object;
}

export interface ProxyConfig {
  readonly name: string;
  readonly type: string;
  /** Null for a type that this build does not speak. */
  readonly protocol: Protocol | null;
  /** Why the node cannot be used; it stays in its groups, and every dial fails with this. Null: it can. */
  readonly inert: string | null;
  readonly udp: boolean;
  readonly interfaceName: string;
  readonly routingMark: number;
  readonly ipVersion: IpVersion;
  readonly dialerProxy: string | null;
  readonly options: object;
}

export interface GroupConfig {
  readonly name: string;
  readonly kind: GroupKind;
  /** Names as written, in order; providers and filters are applied by the build. */
  readonly members: readonly string[];
  /** Output of the kind's schema. */
  readonly options: object;
  /** The common fields; absent for a group that no file defines: then `DEFAULT_GROUP_SETTINGS` hold. */
  readonly settings?: GroupSettings;
}

export interface GroupSettings {
  /** Provider names, `include-all-providers` resolved. */
  readonly use: readonly string[];
  /** What `include-all-proxies` appends to the members, sorted bytewise; `filter` applies to these and to provider nodes. */
  readonly included: readonly string[];
  /** Null: the first used provider's health-check URL, else the default one. */
  readonly url: string | null;
  /** 0: no periodic test. */
  readonly intervalSeconds: number;
  readonly lazy: boolean;
  readonly timeoutMs: number;
  readonly maxFailedTimes: number;
  readonly expectedStatus: readonly Range[];
  readonly disableUdp: boolean;
  /** Expressions joined by a backtick (`compilePattern` of #core/pattern.ts reads each). */
  readonly filter: string;
  readonly excludeFilter: string;
  /** API type names, lower case. */
  readonly excludeTypes: readonly string[];
  readonly hidden: boolean;
  readonly icon: string;
  readonly emptyFallback: string;
  readonly defaultSelected: string;
}

export const DEFAULT_GROUP_SETTINGS: GroupSettings = {
  use: [],
  included: [],
  url: null,
  intervalSeconds: 0,
  lazy: true,
  timeoutMs: 5000,
  maxFailedTimes: 5,
  expectedStatus: [{ from: 0, to: 65_535 }],
  disableUdp: false,
  filter: "",
  excludeFilter: "",
  excludeTypes: [],
  hidden: false,
  icon: "",
  emptyFallback: "COMPATIBLE",
  defaultSelected: "",
};

export interface RuleConfig {
  /** The whole line, trimmed. */
  readonly text: string;
  readonly type: RuleType;
  readonly payload: string;
  readonly target: string;
  readonly options: RuleOptions;
}

export interface Config extends Sections {
  readonly mode: Mode;
  readonly logLevel: LogLevel;
  readonly accounts: readonly Account[];
  readonly skipAuthPrefixes: readonly Cidr[];
  readonly lanAllowedIps: readonly Cidr[];
  readonly lanDisallowedIps: readonly Cidr[];
  readonly listeners: readonly ListenerConfig[];
  /** Items of `listeners` that are TUN devices. */
  readonly tunListeners: readonly TunListenerConfig[];
  readonly tunnels: readonly TunnelConfig[];
  readonly proxies: readonly ProxyConfig[];
  readonly groups: readonly GroupConfig[];
  readonly rules: readonly RuleConfig[];
  readonly subRules: ReadonlyMap<string, readonly RuleConfig[]>;
  /** Every file that a key names. */
  readonly fileUses: readonly FileUse[];
  readonly warnings: readonly Diagnostic[];
}

/** What the top-level ports need to know. */
export type GeneralKeys = Config["general"];
