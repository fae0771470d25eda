/** TLS as protocols are given it: both ends, whichever library or engine does the work. */
import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "./accepted.ts";
import type { SafeFiles } from "./files.ts";
import type { Log } from "./log.ts";
import type { Bypass } from "./tls-bypass.ts";
import type { RealityKeys, ServerIdentity, TlsRecipe } from "./tls-recipe.ts";
import type { TlsContextSource } from "./tls-contexts.ts";
import type { Trust } from "./trust.ts";

/** Made once, and handed to all that speaks TLS: the one place that chooses the implementation. */
export interface TlsProvider {
  /** False: everything goes by the runtime's own streams (`relay: portable`), and QUIC needs its libraries. */
  readonly allowsQuic: boolean;
  /** By the settings of one node. Throws `ConfigError` where certificate and key do not fit together. */
  makeClient(options: TlsClientOptions, log: Log): TlsClient;
  /** By the settings of one listener. Throws `ConfigError` where certificate and key cannot be read or do not fit. */
  openServer(options: TlsServerOptions, files: SafeFiles, log: Log): Promise<TlsServer>;
}

export type TlsVersion = "TLSv1.2" | "TLSv1.3";

/** What both sides of TLS need to know of their use. */
interface CommonOptions {
  /** The protocols to choose from (ALPN), the preferred one first; empty: the extension is not used. */
  readonly alpn: readonly string[];
  /** The oldest version that is spoken. */
  readonly minVersion: TlsVersion;
  /** True: the runtime's HTTP/2 lies on top, which is at its best over a TLS socket of the runtime. */
  readonly carriesHttp2: boolean;
}

/** PEM: the certificate, then its chain; and its key. */
export interface KeyPair {
  readonly certificate: string;
  readonly privateKey: string;
}

/** What a client asks of one server, and by what it knows the server. */
export interface TlsClientOptions extends CommonOptions, ServerIdentity {
  /** Named in errors: `proxy n`. */
  readonly where: string;
  /** The client's own certificate; null: it has none. */
  readonly keyPair: KeyPair | null;
  readonly trust: Trust;
  /** The browser whose ClientHello is shown, in the words of `client-fingerprint`; empty: none. */
  readonly clientFingerprint: string;
  /** Null: the server proves itself by its certificate. */
  readonly reality: RealityOptions | null;
  /** Null: the name of the server is sent in the clear. */
  readonly ech: EchOptions | null;
}

/** Encrypted ClientHello: where its configuration comes from. */
export interface EchOptions {
  /** An ECHConfigList with a configuration that can be used. Throws `DialError` where there is none. */
  configs(signal: AbortSignal): Promise<Buffer>;
}

/** What a node has of REALITY. */
export interface RealityOptions extends RealityKeys {
  /** The browser's key share with ML-KEM-768 is shown. */
  readonly hybrid: boolean;
  /** The first page that a browser would ask the real site for. */
  readonly spiderX: string;
}

export interface TlsOpening {
  readonly signal: AbortSignal;
  /** Connects once more, where the first connection showed that another way is needed; absent: that cannot be had. */
  readonly redial?: () => Promise<Duplex>;
  /** The protocol inside may leave TLS behind. */
  readonly bypassable?: boolean;
}

export interface TlsOpened {
  readonly stream: Duplex;
  /** What both sides agreed on (ALPN); null: nothing. */
  readonly alpn: string | null;
  /** The way round TLS; null where it was not asked for or cannot be had. */
  readonly bypass: Bypass | null;
  /** The server speaks no TLS 1.3. Absent: it does, or that was not asked. */
  readonly isOlder?: boolean;
}

/** The dialling side of TLS, for one node. */
export interface TlsClient {
  /**
   * Speaks TLS through a connected stream and owns it from here: the stream may be gone, and its socket live on in
   * the one that is returned. The server is verified before this settles. Failures are `DialError` (an `AuthError` as
   * its cause where the certificate is refused); nothing is left open then.
   */
  open(stream: Duplex, opening: TlsOpening): Promise<TlsOpened>;
  /**
   * By what a worker does the same on a kernel socket of its own, and verifies as much; the client is to be kept until its
   * connection is begun. Null or absent: only `open` can.
   */
  recipe?(): TlsRecipe | null;
}

export const CLIENT_AUTH_TYPES = [
  "",
  "request",
  "require-any",
  "verify-if-given",
  "require-and-verify",
] as const;
/** What a listener asks of its clients' certificates. */
export type ClientAuthType = (typeof CLIENT_AUTH_TYPES)[number];

export interface TlsServerOptions extends CommonOptions {
  /** Named in errors: `listener l`. */
  readonly where: string;
  /** PEM text or path. */
  readonly certificate: string;
  readonly privateKey: string;
  readonly clientAuthType: ClientAuthType;
  readonly clientAuthCert: string | null;
  /** Encrypted ClientHello: PEM text or path; null: clients cannot hide the name that they ask for. */
  readonly echKey: string | null;
}

export interface TlsAccepting {
  readonly signal?: AbortSignal;
  /** The protocol inside may leave TLS behind. */
  readonly bypassable?: boolean;
}

export interface TlsAccepted extends TlsOpened {
  /** The name in the client's SNI, lower case; null where there was none. */
  readonly serverName: string | null;
  /** Whether there is `bypass`, where looking at that takes the client from a worker. */
  readonly mayBypass?: boolean;
}

/** Accepting side of TLS. Disposing it stops watching the certificate files; accepted streams stay open. */
export interface TlsServer extends Disposable {
  /** By what workers may shake hands in its place. */
  readonly contexts: TlsContextSource;
  /**
   * Does the handshake over a stream, and owns it from here. Throws `ProtocolError` or `AuthError`, and destroys the
   * stream, when the handshake fails, takes longer than 30 s, or the client does not show the required certificate.
   */
  accept(stream: Duplex, options?: TlsAccepting): Promise<TlsAccepted>;
  /** The same for a connection, whose handshake a worker may have begun: then it is continued. */
  acceptConnection(connection: AcceptedConnection, options?: TlsAccepting): Promise<TlsAccepted>;
  /** A client whose handshake a worker has done, and whose socket it keeps, at once; null: `acceptConnection` is to be called. */
  keep(connection: AcceptedConnection, bypassable: boolean): TlsAccepted | null;
}
