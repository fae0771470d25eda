/** The running settings as the Controller shows and changes them; part of `control.ts`. */
import type { Edit } from "./config-edit.ts";
import type { JsonValue } from "./json-value.ts";
import type { LogLevel } from "./log.ts";

export type { JsonValue } from "./json-value.ts";

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
   * Loads and applies; resolves when everything is in force and new lists have come or failed, or take seconds. `ConfigError` (400) where the text or the path is bad,
   * `ApiError` 500 where applying failed; the old configuration then still runs. `force` also makes the port inbounds
   * and LAN settings anew.
   */
  replace(source: ConfigSource, options: { readonly force: boolean }): Promise<void>;
}

/** An error or a warning about a configuration's text; `line` and `column` count from 1. */
export interface ConfigRemark {
  readonly severity: "error" | "warning";
  readonly line: number;
  readonly column: number;
  /** `proxies[3].port`; "" for the text as a whole. */
  readonly path: string;
  readonly message: string;
}

/** An earlier content of the file. */
export interface ConfigVersion {
  /** Grows with every change of the file through weir. */
  readonly id: number;
  readonly sizeBytes: number;
  readonly writtenAtMs: number;
}

/** What runs for a while only: the file still has what was before. */
export interface ConfigTrial {
  readonly text: string;
  readonly leftMs: number;
}

export interface ConfigFileView {
  readonly file: string;
  readonly text: string;
  /** SHA-256 of the file in hexadecimal: a change names the one that it was made from. */
  readonly hash: string;
  readonly versions: readonly ConfigVersion[];
  readonly trial: ConfigTrial | null;
}

/** A change has happened; `settle` makes the Controller anew where its settings changed, once the client knows. It never throws. */
export interface ConfigKept {
  readonly hash: string;
  settle(): void;
}

export interface ConfigPreview {
  readonly before: string;
  readonly text: string;
  /** Of `before`. */
  readonly hash: string;
  /** The errors first. */
  readonly remarks: readonly ConfigRemark[];
}

export interface ConfigChange {
  /** Of the file that the change was made from. */
  readonly hash: string;
  /** Null: into the file at once. Else it runs for so long, and only `confirm` writes it. */
  readonly trialMs: number | null;
}

/**
 * The configuration file. All changes are read and put in force before the file is replaced, which happens whole or not at
 * all. `ApiError` 400 where weir was not started with a file, 409 where the file has another hash or a trial runs,
 * 500 where the configuration cannot be put in force or the file not written: everything is then as before.
 * `ConfigError` with every error of the text.
 */
export interface ConfigFileControl {
  view(): Promise<ConfigFileView>;
  /** Reads a text and forgets it. */
  check(text: string): Promise<readonly ConfigRemark[]>;
  /** The text that edits would make of the file, and what it was found to be; nothing changes. */
  preview(edits: readonly Edit[]): Promise<ConfigPreview>;
  put(text: string, change: ConfigChange): Promise<ConfigKept>;
  edit(edits: readonly Edit[], change: ConfigChange): Promise<ConfigKept>;
  /** To an earlier version; null: the newest. */
  rollback(id: number | null, change: ConfigChange): Promise<ConfigKept>;
  /** `ApiError` 404 where there is no such version. */
  version(id: number): Promise<string>;
  /** Writes what is on trial; `ApiError` 409 where nothing is. */
  confirm(): Promise<ConfigKept>;
  /** Takes a trial back; `ApiError` 409 where there is none. */
  cancel(): Promise<ConfigKept>;
  /** JSON Schema of the file. */
  schema(): Promise<object>;
}
