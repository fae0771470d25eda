/** By what a server is known as the right one, beside the authorities. */
export interface ServerIdentity {
  /** Goes into SNI unless it is an address, and is what the certificate must be valid for. */
  readonly serverName: string;
  /** The name that the certificate must be valid for, where it is not `serverName`. */
  readonly nameCertVerify: string | null;
  /** Accepts any certificate. */
  readonly skipCertVerify: boolean;
  /** SHA-256 of a certificate of the server's chain, 64 lower-case hex digits; replaces the check of the chain. */
  readonly fingerprint: string | null;
}

/** By what a REALITY server and its client know each other. */
export interface RealityKeys {
  /** The server's X25519 key, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** 8 bytes, filled with zeros behind what was given. */
  readonly shortId: Uint8Array;
  /** What the client says that it is: x.y.z. */
  readonly clientVersion: readonly [number, number, number];
  /** The server's ML-DSA-65 key, 1952 bytes; null: only the certificate's HMAC is checked. */
  readonly mldsa65: Uint8Array | null;
}

interface NodeTls {
  /** Of the client in all the world: threads keep by it what they know of its server. */
  readonly id: string;
  /** For SNI; empty: none is sent. */
  readonly sni: string;
  readonly server: ServerIdentity;
}

/** By the library. */
export interface LibraryTls extends NodeTls {
  readonly kind: "tls";
  /** The library's, in this process; it lives as long as the client. */
  readonly context: bigint;
  /** Each protocol with its length in front (RFC 7301 §3.1); empty: no ALPN extension. */
  readonly alpn: Uint8Array;
}

/** By our own engine of TLS 1.3, which says the hello of a browser. */
export interface BrowserTls extends NodeTls {
  readonly kind: "records";
  /** A word of `client-fingerprint` that stands for one hello alone. */
  readonly browser: string;
  /** Authorities: of the library, in this process; they live as long as the client. 0: the chain is not looked at. */
  readonly store: bigint;
  /** ALPN; null: the browser's own. */
  readonly protocols: readonly string[] | null;
  /** The server proves itself by these, and `server` is the site whose chain it shows to others. Null: it has that chain. */
  readonly reality: RealityKeys | null;
}

/** By what TLS to the server of a node is opened on whatever thread: every worker has a copy. The kind is that of its wire. */
export type TlsRecipe = LibraryTls | BrowserTls;
