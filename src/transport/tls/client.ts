import type { Duplex } from "node:stream";
import type { ConnectionOptions, PeerCertificate, SecureContext, TLSSocket } from "node:tls";
import { checkServerIdentity, connect } from "node:tls";
import { AuthError, asDialError, ConfigError, DialError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { Trust } from "#core/trust.ts";
import { parseIp } from "#net/ip.ts";
import { DEFAULT_TRUST } from "#net/trust.ts";
import { clientTuning } from "./tuning.ts";
import type { TlsClientFields } from "./fields.ts";
import { checkPin } from "./pin.ts";

/** What one TLS client needs, ready to use; made once per node by `readTlsClient`, or by hand. */
export interface TlsClientOptions {
  /** Goes into SNI unless it is an address, and is what the certificate must be valid for. */
  readonly serverName: string;
  readonly alpn?: readonly string[];
  /** Accepts any certificate. */
  readonly skipCertVerify?: boolean;
  /** SHA-256 of a certificate, 64 lower-case hex digits; replaces chain verification. */
  readonly fingerprint?: string;
  /** The name that the certificate must be valid for, where it is not `serverName`. */
  readonly nameCertVerify?: string;
  /** Holds trust and the client certificate; absent: the default trust. */
  readonly secureContext?: SecureContext;
  readonly minVersion?: "TLSv1.2" | "TLSv1.3";
}

export interface TlsClientPlace {
  /** Named in errors and warnings. */
  readonly node: string;
  /** The server's host: the name to ask for where the node has none of its own. */
  readonly server: string;
  /** The node's `sni` or `servername`. */
  readonly serverName?: string | undefined;
  /** Where the node has no list of its own. */
  readonly defaultAlpn?: readonly string[];
  readonly minVersion?: "TLSv1.2" | "TLSv1.3";
  readonly files: SafeFiles;
  readonly log: Log;
  readonly trust?: Trust | undefined;
}

/** From the node's keys to options; reads the client certificate. Throws `ConfigError`. */
export async function readTlsClient(
  fields: TlsClientFields,
  place: TlsClientPlace,
): Promise<TlsClientOptions> {
  const { node, log } = place;
  if (fields["ech-opts"]?.enable === true)
    throw new ConfigError(
      `proxy ${node}: ech-opts: Encrypted ClientHello is not available in this runtime; remove ech-opts, it is never silently left out`,
    );
  warn(fields, node, log);
  const alpn = fields.alpn ?? place.defaultAlpn;
  return {
    serverName: place.serverName || place.server,
    ...(alpn === undefined ? {} : { alpn }),
    skipCertVerify: fields["skip-cert-verify"],
    ...(fields.fingerprint === undefined ? {} : { fingerprint: fields.fingerprint }),
    ...(fields["name-cert-verify"] ? { nameCertVerify: fields["name-cert-verify"] } : {}),
    ...(place.minVersion === undefined ? {} : { minVersion: place.minVersion }),
    secureContext: await clientContext(fields, place),
  };
}

function warn(fields: TlsClientFields, node: string, log: Log): void {
  if (fields["skip-cert-verify"] && fields.fingerprint === undefined)
    log.warning(
      `proxy ${node}: skip-cert-verify accepts any certificate; anybody on the way can read this traffic`,
    );
  const browser = fields["client-fingerprint"]?.toLowerCase() ?? "none";
  if (browser !== "none" && browser !== "")
    log.warning(
      `proxy ${node}: client-fingerprint ${browser} cannot be imitated by this TLS library; the handshake shows Node.js`,
    );
}

async function clientContext(fields: TlsClientFields, place: TlsClientPlace): Promise<SecureContext> {
  const { node, files, trust = DEFAULT_TRUST } = place;
  const { certificate, "private-key": key } = fields;
  if ((certificate ?? "") === "" && (key ?? "") === "")
    return trust.context(contextOptions(place.minVersion));
  if (!certificate || !key)
    throw new ConfigError(`proxy ${node}: a client certificate needs both certificate and private-key`);
  try {
    return trust.context({
      ...contextOptions(place.minVersion),
      cert: await files.readPem(certificate),
      key: await files.readPem(key),
    });
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`proxy ${node}: certificate and private-key do not fit together`, { cause });
  }
}

function contextOptions(minVersion: "TLSv1.2" | "TLSv1.3" = "TLSv1.2") {
  return { ...clientTuning, minVersion };
}

/**
 * Speaks TLS through a stream and owns it from here. The server is verified before this settles. Failures are
 * `DialError` (an `AuthError` as its cause where the certificate is refused); the stream is destroyed then.
 */
export function openTlsClient(
  stream: Duplex,
  options: TlsClientOptions,
  signal: AbortSignal,
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      stream.destroy();
      reject(new DialError("aborted", `TLS to ${options.serverName}: aborted`));
      return;
    }
    const socket = connect(connectionOptions(stream, options));
    const settle = (failure: unknown) => {
      signal.removeEventListener("abort", onAbort);
      socket.off("error", settle).off("close", onClose).off("end", onClose).off("secureConnect", onSecure);
      if (failure === null) return resolve(socket);
      socket.on("error", () => {}); // a second fault of a dial that already failed
      socket.destroy();
      stream.destroy();
      reject(asDialError(failure, `TLS to ${options.serverName}`));
    };
    const onAbort = () => settle(new DialError("aborted", `TLS to ${options.serverName}: aborted`));
    const onClose = () => settle(new Error("the server closed the connection during the handshake"));
    const onSecure = () => settle(refusal(socket, options));
    signal.addEventListener("abort", onAbort, { once: true });
    socket.on("error", settle).on("close", onClose).on("end", onClose).on("secureConnect", onSecure);
    stream.on("error", (error) => socket.destroy(error));
  });
}

function connectionOptions(stream: Duplex, options: TlsClientOptions): ConnectionOptions {
  const { serverName, alpn, fingerprint, skipCertVerify = false } = options;
  const verifyName = options.nameCertVerify ?? serverName;
  return {
    socket: stream,
    // An address must not go into SNI; Node refuses it there.
    servername: parseIp(serverName) === null ? serverName : "",
    ...(alpn === undefined || alpn.length === 0 ? {} : { ALPNProtocols: [...alpn] }),
    rejectUnauthorized: fingerprint === undefined && !skipCertVerify,
    checkServerIdentity: (_host: string, certificate: PeerCertificate) =>
      checkServerIdentity(verifyName, certificate),
    ...(options.secureContext === undefined
      ? contextOptions(options.minVersion)
      : { secureContext: options.secureContext }),
  };
}

function refusal(socket: TLSSocket, options: TlsClientOptions): Error | null {
  if (options.fingerprint === undefined) return null;
  const reason = checkPin(socket, options.fingerprint, options.nameCertVerify ?? options.serverName);
  return reason === null ? null : new AuthError(reason);
}
