import type { Duplex } from "node:stream";
import type { SecureContext } from "node:tls";
import { createSecureContext, TLSSocket } from "node:tls";
import { AuthError, ConfigError, messageOf, ProtocolError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import { isPemText } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { ClientAuthType, TlsServerFields } from "./fields.ts";

/** A peer that has not finished its handshake by then is closed. */
const HANDSHAKE_TIMEOUT_MS = 30_000;

export interface TlsServerOptions {
  /** PEM text or path. */
  readonly certificate: string;
  readonly privateKey: string;
  readonly clientAuthType: ClientAuthType;
  readonly clientAuthCert: string | null;
  readonly alpn: readonly string[];
  readonly minVersion?: "TLSv1.2" | "TLSv1.3";
}

export interface TlsAccepted {
  readonly stream: TLSSocket;
  /** What both sides agreed on; null where the client offered nothing. */
  readonly alpn: string | null;
  /** The name in the client's SNI, lower case; null where there was none. */
  readonly serverName: string | null;
}

/** Accepting side of TLS. Disposing it ends the watching of its files; accepted streams go on. */
export interface TlsServer extends Disposable {
  /**
   * Speaks TLS through a stream and owns it from here. Throws `ProtocolError` or `AuthError`, and destroys the stream,
   * where the handshake fails, takes over 30 s, or the client does not show the certificate that is asked for.
   */
  accept(stream: Duplex, signal?: AbortSignal): Promise<TlsAccepted>;
}

/**
 * From a listener's keys; null where it has no certificate. `where` (`listener edge`) is named in errors: a key
 * without its certificate, client authentication without a certificate to check against, ECH.
 */
export function readTlsServer(
  fields: TlsServerFields,
  where: string,
  alpn: readonly string[] = [],
): TlsServerOptions | null {
  const { certificate = "", "private-key": privateKey = "", "client-auth-cert": authority = "" } = fields;
  if ((fields["ech-key"] ?? "") !== "")
    throw new ConfigError(
      `${where}: ech-key: Encrypted ClientHello is not available in this runtime; remove the key`,
    );
  if (certificate === "" && privateKey === "") {
    if (authority !== "" || fields["client-auth-type"] !== "")
      throw new ConfigError(
        `${where}: client-auth-type and client-auth-cert need certificate and private-key`,
      );
    return null;
  }
  if (certificate === "" || privateKey === "")
    throw new ConfigError(`${where}: TLS needs both certificate and private-key`);
  const type =
    fields["client-auth-type"] === "" && authority !== "" ? "require-and-verify" : fields["client-auth-type"];
  if (VERIFYING.has(type) && authority === "")
    throw new ConfigError(
      `${where}: client-auth-type ${type} needs client-auth-cert, the authority to check against`,
    );
  return { certificate, privateKey, clientAuthType: type, clientAuthCert: authority || null, alpn };
}

const VERIFYING: ReadonlySet<string> = new Set(["verify-if-given", "require-and-verify"]);
const REQUIRING: ReadonlySet<string> = new Set(["require-any", "require-and-verify"]);

/** Throws `ConfigError` where certificate and key cannot be read or do not fit. */
export async function openTlsServer(
  options: TlsServerOptions,
  files: SafeFiles,
  log: Log,
): Promise<TlsServer> {
  const live = await openLiveContext(options, files, log);
  const tlsOptions = {
    isServer: true,
    ...(options.alpn.length === 0 ? {} : { ALPNProtocols: [...options.alpn] }),
    requestCert: options.clientAuthType !== "",
    rejectUnauthorized: false, // checked after the handshake, so that the client gets an orderly end
  };
  return {
    accept: (stream, signal) =>
      handshake(
        stream,
        new TLSSocket(stream, { ...tlsOptions, secureContext: live.current() }),
        options,
        signal,
      ),
    [Symbol.dispose]: () => live[Symbol.dispose](),
  };
}

function handshake(
  stream: Duplex,
  socket: TLSSocket,
  options: TlsServerOptions,
  signal?: AbortSignal,
): Promise<TlsAccepted> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => settle(new ProtocolError("no TLS handshake within 30 s")),
      HANDSHAKE_TIMEOUT_MS,
    );
    const settle = (failure: Error | null) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.off("error", onError).off("close", onClose).off("end", onClose).off("secure", onSecure);
      if (failure === null)
        return resolve({ stream: socket, alpn: socket.alpnProtocol || null, serverName: sniOf(socket) });
      socket.on("error", () => {}); // a second fault of a handshake that already failed
      socket.destroy();
      stream.destroy();
      reject(failure);
    };
    const onError = (cause: Error) => settle(new ProtocolError(`TLS handshake: ${cause.message}`, { cause }));
    const onClose = () =>
      settle(new ProtocolError("the client closed the connection during the TLS handshake"));
    const onAbort = () => settle(new ProtocolError("aborted during the TLS handshake"));
    const onSecure = () => {
      // Only `tls.Server` clears this, and HTTP/2 waits for it.
      (socket as TLSSocket & { secureConnecting: boolean }).secureConnecting = false;
      settle(refusal(socket, options.clientAuthType));
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    socket.on("error", onError).on("close", onClose).on("end", onClose).on("secure", onSecure);
    stream.on("error", (error) => socket.destroy(error));
    if (signal?.aborted === true) onAbort();
  });
}

function sniOf(socket: TLSSocket): string | null {
  const { servername } = socket as TLSSocket & { servername?: string | false | null };
  return typeof servername === "string" && servername !== "" ? servername.toLowerCase() : null;
}

/** What the library knows of the client's certificate. Only `tls.Server` reads it into `authorized`, so it is read here. */
function verifyError(socket: TLSSocket): Error | null {
  const { ssl } = socket as TLSSocket & { ssl?: { verifyError?(): Error | null | undefined } };
  if (typeof ssl?.verifyError !== "function") return new Error("the runtime does not tell"); // closed, not open
  return ssl.verifyError() ?? null;
}

function refusal(socket: TLSSocket, type: ClientAuthType): Error | null {
  if (type === "" || type === "request") return null;
  const given = socket.getPeerX509Certificate() !== undefined;
  if (!given) return REQUIRING.has(type) ? new AuthError("the client showed no certificate") : null;
  if (!VERIFYING.has(type)) return null;
  const error = verifyError(socket);
  return error === null ? null : new AuthError(`the client's certificate is refused: ${error.message}`);
}

interface LiveContext extends Disposable {
  current(): SecureContext;
}

/** Keeps one context and replaces it when a file changes. Half a change (a new key, the old certificate) keeps the old. */
async function openLiveContext(options: TlsServerOptions, files: SafeFiles, log: Log): Promise<LiveContext> {
  const texts = {
    cert: await files.readPem(options.certificate),
    key: await files.readPem(options.privateKey),
    ...(options.clientAuthCert === null ? {} : { ca: await files.readPem(options.clientAuthCert) }),
  };
  const make = () => createSecureContext({ ...texts, minVersion: options.minVersion ?? "TLSv1.2" });
  let context: SecureContext;
  try {
    context = make();
  } catch (cause) {
    throw new ConfigError(`certificate and private-key cannot be used: ${messageOf(cause)}`, { cause });
  }
  const watch = (source: string | null, part: keyof typeof texts): Disposable[] => {
    if (source === null || isPemText(source)) return [];
    const onChange = (pem: string) => {
      texts[part] = pem;
      try {
        context = make();
        log.info(`${source}: changed, used for new connections`);
      } catch (error) {
        log.warning(`${source}: changed, but certificate and key do not fit (yet): ${messageOf(error)}`);
      }
    };
    return [files.watchPem(source, onChange)];
  };
  const watches = [
    ...watch(options.certificate, "cert"),
    ...watch(options.privateKey, "key"),
    ...watch(options.clientAuthCert, "ca"),
  ];
  return {
    current: () => context,
    [Symbol.dispose]: () => watches.forEach((one) => one[Symbol.dispose]()),
  };
}
