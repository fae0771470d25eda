/** What wires of some kinds take along besides their numbers. It goes to another thread as a copy. */

/** As libcrypto calls them. */
export type WireCipher = "aes-128-gcm" | "aes-192-gcm" | "aes-256-gcm" | "chacha20-poly1305";

export interface WireDetails {
  /** Goes out in front of the first sealed bytes, or alone where there were none for so long, in ms. */
  readonly opening?: { readonly bytes: Uint8Array; readonly afterMs: number };
  readonly shadowsocks?: ShadowsocksDetails;
  readonly vmess?: VmessDetails;
  /** Above all of the wire. */
  readonly session?: ClientSession;
}

/** What the bytes of a listener's client are that has many streams in its connection. */
export type ClientSession =
  | {
      /** Those of `protocols/shared/stream-frame.ts`. */
      readonly frames: "padded";
      /** What clients are asked for. */
      readonly padding: Uint8Array;
    }
  | {
      readonly frames: "smux" | "yamux";
      /** Of the preface, which comes in front of all frames. */
      readonly prefaceBytes: number;
    }
  | {
      /** Behind the preface; streams begin as connections of their own would. */
      readonly frames: "http2";
      readonly tunnels: Http2Tunnels;
    };

/** What a listener offers over HTTP/2, each stream a request: see `transport/http2/tunnels.ts`. */
export interface Http2Tunnels {
  /** Service name of the gRPC transport; null: not offered. */
  readonly grpcServiceName: string | null;
  /** The h2 transport; a query in its path does not count. Null: not offered. */
  readonly h2: HttpPlace | null;
  /** XHTTP, where each stream is one request, at a path without a query; null: not offered, or other modes of it are, too. */
  readonly streamOne: HttpPlace | null;
}

/** Where a transport over HTTP is served. */
export interface HttpPlace {
  readonly path: string;
  /** Empty: for any. */
  readonly hosts: readonly string[];
}

/** Of a session whose first writes are padded, and that has not made all of these. */
export interface PaddingDetails {
  readonly shapes: WriteShapes;
  /** Writes of the session so far. */
  readonly writes: number;
}

/** How the first writes of a session are cut and filled. */
export interface WriteShapes {
  /** Writes with this number and above are left alone. */
  readonly stop: number;
  readonly lines: ReadonlyMap<number, readonly ShapeItem[]>;
}

/** The size of a piece, from a range; or an end, where nothing is left of the write. */
export type ShapeItem = "check" | { readonly from: number; readonly to: number };

/** Of a connection whose answer has not been said, or not been read yet. */
export interface ShadowsocksDetails {
  /** A server's, in front of its first chunk; null: it is out, or another's. */
  readonly salt: Uint8Array | null;
  /** By what a client opens what is behind the server's salt; null: it was read. */
  readonly answer: { readonly cipher: WireCipher; readonly key: Uint8Array } | null;
  /** SIP022: that of the request, which the answer repeats; null: the older edition. */
  readonly requestSalt: Uint8Array | null;
  /** Of the older edition: what remembers the salts of servers for all threads; null: nothing does. */
  readonly salts: SharedArrayBuffer | null;
  /** How far the clock that answers are judged by is ahead of the system's. */
  readonly clockAheadMs: number;
}

export interface VmessDetails {
  readonly inward: VmessDirection;
  readonly outward: VmessDirection;
  /** A server's response header, in front of its first chunk; null: it is out, or another's. */
  readonly response: Uint8Array | null;
  /** By what a client opens it; null: it was read. */
  readonly awaited: VmessResponse | null;
  /** What the next chunk to the peer carries at most: a client's first one is short. */
  readonly nextBytes: number;
}

/** The state of one direction behind its headers. */
export interface VmessDirection {
  /** Its own, 16 bytes: masks of sizes come from it, and the nonces of chunks. */
  readonly iv: Uint8Array;
  /** That of the request, by which sealed sizes have their nonces; null: sizes are not sealed. */
  readonly sizeIv: Uint8Array | null;
  readonly isMasked: boolean;
  readonly isPadded: boolean;
  /** Numbers that were drawn from the masks. */
  readonly drawn: number;
  /** Chunks so far, in 16 bits. */
  readonly count: number;
  /** The sealed size of the chunk that comes next and its padding, where they were read; -1: they were not. */
  readonly size: number;
  readonly padding: number;
  /** Whether an empty chunk is the peer's end; see `BodyOpener`. */
  readonly mayEnd: boolean;
}

/** What opens one message by AES-128-GCM. */
export interface OneMessage {
  readonly key: Uint8Array;
  readonly nonce: Uint8Array;
}

export interface VmessResponse {
  /** Of its sealed length, and of what follows that. */
  readonly length: OneMessage;
  readonly header: OneMessage;
  /** Its first byte. */
  readonly verifier: number;
  /** How long it is with its tag, where that was read; -1: it was not. */
  readonly bytes: number;
}
