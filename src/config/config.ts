/** What a file means, as one frozen value. Made by `parseConfig`; everything else only reads it. */
import type { Cidr } from "#net/cidr.ts";
import type { GroupKind } from "#core/group.ts";
import type { Protocol } from "#core/protocol.ts";
import type { RuleOptions, RuleType } from "#core/rule.ts";
import type { Ip, Network } from "#core/session.ts";
import type { Account } from "#core/inbound.ts";
import type { LogLevel } from "#core/log.ts";
import type { Sections } from "./sections/index.ts";

export type Mode = "rule" | "global" | "direct";
export type IpVersion = "dual" | "ipv4" | "ipv6" | "ipv4-prefer" | "ipv6-prefer";

/** Something to tell the user about the file. `line` and `column` count from 1. */
export interface Diagnostic {
  readonly severity: "error" | "warning";
  readonly line: number;
  readonly column: number;
  /** `proxies[3].port`; empty for the document itself. */
  readonly path: string;
  /** What is wrong and what would be right. */
  readonly message: string;
}

/** A listener of `listeners`, or one that a top-level port stands for (`DEFAULT-MIXED` and the like). */
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
  /** Null for a type that this build does not speak: the node stays in its groups and every dial fails clearly. */
  readonly protocol: Protocol | null;
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
  readonly options: object;
}

export interface RuleConfig {
  /** The whole line, trimmed. */
  readonly text: string;
  readonly type: RuleType;
  readonly payload: string;
  readonly target: string;
  readonly options: RuleOptions;
}

export interface TunnelConfig {
  readonly networks: readonly Network[];
  readonly listen: { readonly ip: Ip; readonly port: number };
  readonly target: { readonly host: string; readonly port: number };
  readonly proxy: string | null;
}

export interface Config extends Sections {
  readonly mode: Mode;
  readonly logLevel: LogLevel;
  readonly accounts: readonly Account[];
  readonly skipAuthPrefixes: readonly Cidr[];
  readonly lanAllowedIps: readonly Cidr[];
  readonly lanDisallowedIps: readonly Cidr[];
  readonly listeners: readonly ListenerConfig[];
  readonly tunnels: readonly TunnelConfig[];
  readonly proxies: readonly ProxyConfig[];
  readonly groups: readonly GroupConfig[];
  readonly rules: readonly RuleConfig[];
  readonly subRules: ReadonlyMap<string, readonly RuleConfig[]>;
  readonly warnings: readonly Diagnostic[];
}
