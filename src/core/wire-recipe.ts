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

/** Sessions to the server of a node, of which each serves one stream after the other. */
export interface SessionRecipe {
  /** No other node has it, in any configuration of this process: threads keep idle sessions by it. */
  readonly id: string;
  /** What the client proves itself by. */
  readonly hash: Uint8Array;
  /** Free text that names the client. */
  readonly client: string;
  /** The text of the scheme by which the first writes are padded, until the server wants another one. */
  readonly scheme: Uint8Array;
  /** False: each session serves one stream. */
  readonly reuses: boolean;
  /** Of idle sessions. */
  readonly checkIntervalMs: number;
  readonly timeoutMs: number;
  /** So many of the youngest are kept open by each thread, however long they are idle. */
  readonly minIdle: number;
  /** One word: 1 once the node has gone, and its sessions are not used again. */
  readonly gone: SharedArrayBuffer;
}

/** Requests of HTTP/2, each a stream: its bodies are what is sent both ways. */
export interface Http2Recipe {
  /** The fields of a request, names in lower case; where there are several, each stream takes any. */
  readonly requests: readonly (readonly (readonly [name: string, value: string])[])[];
  /** In front of the padding of `referer`, by which XHTTP hides the length of a request; null: it has none. */
  readonly paddedReferer: string | null;
  /** Bodies are messages of gRPC; false: they are the payload. */
  readonly isGrpc: boolean;
  /** Of one connection at one time; 0: what the server allows. */
  readonly maxStreams: number;
  /** 0: no pings. */
  readonly pingIntervalMs: number;
}

/** Connections to the server of a node that many streams share. */
export interface MuxRecipe {
  /** No other node has it, in any configuration of this process: threads keep their connections by it. */
  readonly id: string;
  readonly protocol: "smux" | "yamux" | Http2Recipe;
  /** By what such a connection is begun: with streams that say where they lead, as one to any destination of the node. */
  readonly base: WireRecipe;
  /** As the event loop's pool has them (`transport/mux/pool.ts`); of the connections each thread has its share, and one at least. */
  readonly maxConnections: number;
  readonly minStreams: number;
  readonly maxStreams: number;
  /** One word: 1 once the node has gone, and its connections take no more streams. */
  readonly gone: SharedArrayBuffer;
}

/** What lies between the socket and the wire of a protocol; at least one of them. */
export interface UnderlayRecipe {
  readonly tls: TlsRecipe | null;
  /** Over that. */
  readonly upgrade: UpgradeRecipe | null;
  /** Over that: the wire is a stream of one, and an idle one is taken before a socket is opened. Absent: there is none. */
  readonly session?: SessionRecipe;
  /** In place of all these: the wire is a stream of a shared connection. */
  readonly mux?: MuxRecipe;
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
