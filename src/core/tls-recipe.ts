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

/** By what TLS to the server of a node is opened on whatever thread: every worker has a copy. */
export interface TlsRecipe {
  /** Of the client in all the world: threads keep by it what they know of its server. */
  readonly id: string;
  /** The library's context, in this process; it lives as long as the client. */
  readonly context: bigint;
  /** For SNI; empty: none is sent. */
  readonly sni: string;
  /** Each protocol with its length in front (RFC 7301 §3.1); empty: no ALPN extension. */
  readonly alpn: Uint8Array;
  readonly server: ServerIdentity;
}
