/**
 * What the Controller API reads and commands: plain views and a handful of verbs, one small interface a resource. The
 * App implements it and stays the same object across reloads; views are snapshots that the caller never edits.
 * Names and units here are ours; the API layer turns them into the field names of the ecosystem.
 *
 * Errors: `ApiError` says its own status; `ConfigError` becomes 400 with its message; `DialError` with the reason
 * `timeout` 504, any other 503; everything else 500 with a neutral text, the cause going to the log only.
 */
import type { Caller } from "./access.ts";
import type { ConfigFileControl, ConfigsControl } from "./control-configs.ts";
import type { ConnectionsControl, LogsControl } from "./control-connections.ts";
import type { CachesControl, DnsControl, StorageControl } from "./control-dns.ts";
import type { ProxiesControl, ProxyProvidersControl } from "./control-proxies.ts";
import type { RuleProvidersControl, RulesControl } from "./control-rules.ts";
import type { GovernanceControl } from "./governance.ts";
import type { KernelDirectControl } from "./kernel-direct.ts";
import type { SetupControl } from "./control-setup.ts";
import type { ManagedProtocolView } from "./users.ts";

export type * from "./control-configs.ts";
export type * from "./control-connections.ts";
export type * from "./control-dns.ts";
export type * from "./control-proxies.ts";
export type * from "./control-rules.ts";
export type * from "./control-setup.ts";

export interface Control {
  readonly build: BuildView;
  readonly configs: ConfigsControl;
  readonly configFile: ConfigFileControl;
  readonly setup: SetupControl;
  readonly backup: BackupControl;
  readonly restore: RestoreControl;
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
  readonly updates: UpdatesControl;
  readonly governance: GovernanceControl;
  readonly kernelDirect: KernelDirectControl;
  /** Resident set of the process in bytes. */
  memoryBytes(): number;
}

export interface BuildView {
  /** Shown as it is. Must not contain `sing-box` or `honk`: dashboards would switch to another dialect. */
  readonly version: string;
  /** Protocols whose users can be managed, whether a listener of theirs is managed or not. */
  readonly managedProtocols: readonly ManagedProtocolView[];
}

export interface BackupControl {
  /** Everything that a restart goes by and a configuration does not say, with the configuration; not encrypted. Rejects with `StoreError`. */
  make(): Promise<Uint8Array>;
}

export interface RestoreControl {
  /** What is in a backup, and what would be lost; changes nothing. `key`: a passphrase or lines of age-keygen. Rejects with `ApiError` 400. */
  look(file: Uint8Array, key: string): Promise<RestoreView>;
  /**
   * Lays it beside the state, if it is the file with this SHA-256; answers with the restart that puts it in force, called
   * once the client knows. Rejects with `ApiError` and nothing changed.
   */
  stage(file: Uint8Array, key: string, sum: string, asker: RestoreAsker): Promise<() => void>;
}

/** For the audit log. */
export interface RestoreAsker {
  readonly caller: Caller;
  readonly from: string;
}

export interface RestoreView {
  /** SHA-256 of the file, in hexadecimal digits. */
  readonly sum: string;
  readonly createdAtMs: number;
  /** Of the weir that made it. */
  readonly version: string;
  /** Null: the backup has none, and the present one stays. */
  readonly configuration: string | null;
  readonly isSameConfiguration: boolean;
  /** The Controller will ask for another secret. */
  readonly isOtherSignIn: boolean;
  /** The Controller will listen elsewhere. */
  readonly isOtherAddress: boolean;
  readonly stores: readonly {
    readonly role: string;
    readonly path: string;
    /** Records by table. */
    readonly counts: Readonly<Record<string, number>>;
  }[];
  /** That will be there. */
  readonly listeners: readonly { readonly name: string; readonly type: string }[];
  readonly users: number;
  readonly tokens: number;
  /** Groups with a selection. */
  readonly choices: number;
  /** Names of what is there now and not in the backup. */
  readonly lost: Readonly<Record<"listeners" | "users" | "tokens", readonly string[]>>;
}

export interface UpdateRequest {
  /** As dashboards of the ecosystem say it; "": none. */
  readonly channel: string;
}

export interface UpdateView {
  /** The version that runs. */
  readonly version: string;
  /** There is a block `update`. */
  readonly isConfigured: boolean;
  readonly byController: boolean;
}

export interface OfferedView {
  readonly version: string;
  /** What it is to the one that runs; unknown: it cannot be told to be newer. */
  readonly age: "older" | "same" | "newer" | "unknown";
}

export interface UpdatesControl {
  view(): UpdateView;
  /** Asks the release folder; changes nothing. `ApiError` 500 `update error: …`. */
  look(): Promise<OfferedView>;
  /** Fetches a newer version, which takes over; answers with its name. `ApiError` 500 `update error: …` where it does not, also where none is newer. */
  update(request: UpdateRequest): Promise<string>;
}

export interface UpkeepControl {
  /** Checks that a restart can work (throws otherwise) and answers with what does it, called once the client knows; it never throws. */
  prepareRestart(): Promise<() => void>;
  /** Downloads `external-ui-url` into the UI folder. `ApiError` 500 where none is configured. */
  upgradeUi(): Promise<void>;
  /** Downloads the geodata files in use, verifies and swaps. `ApiError` 500, also when an update is running. */
  updateGeo(): Promise<void>;
}
