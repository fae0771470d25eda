/** What a new listener or node of the configuration file is made of; part of `control.ts`. Nothing of it changes anything. */
import type { JsonValue } from "./json-value.ts";
import type { ManagedProtocolView } from "./users.ts";

/** A listener that is in force. */
export interface ListenerView {
  readonly name: string;
  /** As in files. */
  readonly type: string;
  readonly hosts: readonly string[];
  readonly ports: readonly number[];
  /** An item of `listeners`; false: one of the top-level ports, which are no list. */
  readonly isListed: boolean;
  /** Its users change while it runs. */
  readonly isManaged: boolean;
}

/** A node of `proxies` that is in force, or cannot be used and says why. */
export interface NodeView {
  readonly name: string;
  readonly type: string;
  /** `host:port`; "": it has none. */
  readonly server: string;
  /** Why it cannot be used; null: it can. */
  readonly inert: string | null;
}

export interface SetupView {
  readonly listeners: readonly ListenerView[];
  readonly nodes: readonly NodeView[];
  /** With the members that the file names. */
  readonly groups: readonly { readonly name: string; readonly members: readonly string[] }[];
  /** Null: there is no `svc` block, so no users are managed. */
  readonly svc: { readonly publicBaseUrl: string; readonly managed: readonly string[] } | null;
  /** There is an `acme` block, so listeners can name hosts in `acme`. */
  readonly hasAcme: boolean;
  /** Protocols whose users can be managed. */
  readonly protocols: readonly ManagedProtocolView[];
}

export const KEY_KINDS = ["uuid", "password", "secret", "key-16", "key-32", "reality"] as const;
/**
 * `password` and `secret` are 128 and 256 random bits as text, `key-16` and `key-32` so many random bytes in base64;
 * `reality` a key pair with a short id.
 */
export type KeyKind = (typeof KEY_KINDS)[number];

export interface PortQuestion {
  readonly host: string;
  readonly port: number;
  readonly network: "tcp" | "udp";
}

/** A site that may become dest of a REALITY server. */
export interface TargetView {
  readonly host: string;
  readonly port: number;
  readonly serverName: string;
  /** Why it cannot be dest; empty: it can. */
  readonly faults: readonly string[];
  /** Why another one would be better. */
  readonly doubts: readonly string[];
  /** In ms; null: it was not reached. */
  readonly roundTripMs: number | null;
}

export interface LinkedNodes {
  /** Items for `proxies`, with names that differ from each other and from those in force. */
  readonly nodes: readonly Readonly<Record<string, JsonValue>>[];
  /** Lines that are no links. */
  readonly skipped: number;
}

export interface SetupControl {
  view(): SetupView;
  /** Fresh values by the keys that they are for; one that has no key of its own is `value`. */
  keys(kind: KeyKind): Readonly<Record<string, string>>;
  /** A certificate that is signed by itself, and its key, as PEM. `names`: host names and IP addresses. */
  certificate(names: readonly string[]): { readonly certificate: string; readonly privateKey: string };
  /** Why nothing can listen there; null: it can. */
  portFault(question: PortQuestion): Promise<string | null>;
  /** The best one first. `sites`: `HOST` or `HOST:PORT`; `ConfigError` where one is neither. */
  targets(sites: readonly string[], signal: AbortSignal): Promise<readonly TargetView[]>;
  /** Of share links or a subscription's body. `ConfigError` where the text is neither. */
  nodesOf(text: string): LinkedNodes;
  /**
   * Share links of a listener whose users stand in the file; empty where clients have none. `ApiError` 404: no such
   * listener. `host`: how clients reach this machine.
   */
  links(listener: string, host: string): Promise<readonly string[]>;
}
