/** The running settings as the Controller shows and changes them; part of `control.ts`. */
import type { LogLevel } from "./log.ts";

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** The running settings. The API writes each key in kebab case (`mixedPort` → `mixed-port`). */
export interface ConfigsView {
  /** Ports really listening; 0: off. */
  readonly port: number;
  readonly socksPort: number;
  readonly redirPort: number;
  readonly tproxyPort: number;
  readonly mixedPort: number;
  readonly tun: TunView;
  /** Names only, never passwords; null where none are configured. */
  readonly authentication: readonly string[] | null;
  readonly skipAuthPrefixes: readonly string[] | null;
  readonly lanAllowedIps: readonly string[] | null;
  readonly lanDisallowedIps: readonly string[] | null;
  readonly allowLan: boolean;
  readonly bindAddress: string;
  readonly inboundTfo: boolean;
  readonly inboundMptcp: boolean;
  readonly mode: "rule" | "global" | "direct";
  readonly unifiedDelay: boolean;
  readonly logLevel: LogLevel;
  readonly ipv6: boolean;
  readonly interfaceName: string;
  readonly routingMark: number;
  readonly geoxUrl: {
    readonly geoIp: string;
    readonly mmdb: string;
    readonly asn: string;
    readonly geoSite: string;
  };
  readonly geoAutoUpdate: boolean;
  /** Hours. */
  readonly geoUpdateInterval: number;
  readonly geodataMode: boolean;
  readonly geodataLoader: string;
  readonly geositeMatcher: string;
  readonly tcpConcurrent: boolean;
  readonly findProcessMode: string;
  readonly sniffing: boolean;
  readonly globalUa: string;
  readonly etagSupport: boolean;
  /** Seconds. */
  readonly keepAliveIdle: number;
  /** Seconds. */
  readonly keepAliveInterval: number;
  readonly disableKeepAlive: boolean;
}

export interface TunView {
  readonly enable: boolean;
  readonly device: string;
  readonly stack: "gVisor" | "System" | "Mixed";
  readonly dnsHijack: readonly string[];
  readonly autoRoute: boolean;
  readonly autoDetectInterface: boolean;
  readonly fileDescriptor: number;
  /** Every other key of the block, named as in the file; the API leaves out zero, false, "" and empty lists. */
  readonly more: Readonly<Record<string, JsonValue>>;
}

/**
 * What a PATCH asks for, types and ranges already checked; an absent key keeps its running value. `tun` holds only the
 * members that were sent, named as in the file, `kernel-direct-max-entries` 0 already turned into 4096.
 */
export interface ConfigsPatch {
  readonly mode?: ConfigsView["mode"];
  readonly logLevel?: LogLevel;
  readonly ipv6?: boolean;
  readonly interfaceName?: string;
  readonly tcpConcurrent?: boolean;
  readonly unifiedDelay?: boolean;
  readonly sniffing?: boolean;
  readonly findProcessMode?: "always" | "strict" | "off";
  readonly port?: number;
  readonly socksPort?: number;
  readonly redirPort?: number;
  readonly tproxyPort?: number;
  readonly mixedPort?: number;
  readonly allowLan?: boolean;
  readonly bindAddress?: string;
  readonly skipAuthPrefixes?: readonly string[];
  readonly lanAllowedIps?: readonly string[];
  readonly lanDisallowedIps?: readonly string[];
  readonly tun?: Readonly<Record<string, JsonValue>>;
}

/** Where the next configuration comes from: the file in use, another file (absolute, safe path), or text. */
export type ConfigSource =
  | { readonly kind: "current" }
  | { readonly kind: "path"; readonly path: string }
  | { readonly kind: "payload"; readonly text: string };

export interface ConfigsControl {
  view(): ConfigsView;
  /**
   * Changes live state only. All or nothing: the merged TUN settings are checked first (`ConfigError`: 400, nothing
   * changed), then the TUN is rebuilt (failure: `ApiError` 500, previous TUN restored), then the other keys are
   * applied.
   */
  patch(fragment: ConfigsPatch): Promise<void>;
  /**
   * Loads and applies; resolves when everything is in force. `ConfigError` (400) where the text or the path is bad,
   * `ApiError` 500 where applying failed; the old configuration then still runs. `force` also makes the port inbounds
   * and LAN settings anew.
   */
  replace(source: ConfigSource, options: { readonly force: boolean }): Promise<void>;
}
