import type { TlsRecipe } from "./tls-recipe.ts";

/** What is asked for over HTTP/1.1 in front of all else. */
export interface UpgradeRecipe {
  /** Frames of WebSocket follow; false: the bare stream does. */
  readonly isFramed: boolean;
  /** With its query. */
  readonly path: string;
  readonly host: string;
  /** Extra header fields; `Host` among them is ignored. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What lies between the socket and the wire of a protocol; at least one of them. */
export interface UnderlayRecipe {
  readonly tls: TlsRecipe | null;
  /** Over that. */
  readonly upgrade: UpgradeRecipe | null;
}

/** By what the wire to the server of a node is begun, on whatever thread: every worker has a copy. */
export interface WireRecipe {
  /** The name of a beginning in `protocols/begin-wire.ts`. */
  readonly protocol: string;
  /** Plain data, which that protocol alone reads. */
  readonly settings: object;
  /** Absent: the wire lies over the socket. */
  readonly under?: UnderlayRecipe;
}
