import { Duplex } from "node:stream";
import { AuthError, ConfigError, ProtocolError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { TlsContextSource, TlsWorkerConnection } from "#core/held.ts";
import type { Log } from "#core/log.ts";
import { nativeTls, type NativeTls } from "#platform/tls.ts";
import type { ClientAuthType, TlsServerFields } from "./fields.ts";
import { openLiveContexts } from "./live-contexts.ts";
import { canGoNative, goOnShaking, shakeNatively } from "./native-server.ts";
import { nodeAcceptor } from "./node-server.ts";
import type { Bypass } from "./record-pump.ts";

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
  readonly stream: Duplex;
  /** What both sides agreed on; null where the client offered nothing. */
  readonly alpn: string | null;
  /** The name in the client's SNI, lower case; null where there was none. */
  readonly serverName: string | null;
  /** The way round TLS; null where it was not asked for or cannot be had. */
  readonly bypass: Bypass | null;
}

export interface AcceptOptions {
  readonly signal?: AbortSignal;
  /** The protocol inside may leave TLS behind. */
  readonly bypassable?: boolean;
}

/** Accepting side of TLS. Disposing it stops watching the certificate files; accepted streams stay open. */
export interface TlsServer extends Disposable {
  /** By what threads may shake hands in its place. */
  readonly contexts: TlsContextSource;
  /**
   * Does the handshake over a stream, or continues one that a worker has begun, and owns it from here. Throws
   * `ProtocolError` or `AuthError`, and destroys the stream, when the handshake fails, takes longer than 30 s, or the
   * client does not show the required certificate.
   */
  accept(client: Duplex | TlsWorkerConnection, options?: AcceptOptions): Promise<TlsAccepted>;
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

/**
 * Throws `ConfigError` where certificate and key cannot be read or do not fit. `native` null: by `node:tls` alone, which
 * also takes what is no kernel socket, or has been read from.
 */
export async function openTlsServer(
  options: TlsServerOptions,
  files: SafeFiles,
  log: Log,
  native: NativeTls | null = nativeTls(),
): Promise<TlsServer> {
  log.debug(() => `TLS by ${native === null ? "node:tls" : "the runtime's libssl, past its streams"}`);
  const live = await openLiveContexts(options, { files, log, native });
  const byNode = nodeAcceptor(options);
  const begin = (client: Duplex | TlsWorkerConnection, exact: boolean): Shaking => {
    const { node, ssl } = live.current();
    if (!(client instanceof Duplex)) {
      if (native === null || ssl === null) throw new Error("a client of another library");
      return goOnShaking(client, { native, context: ssl, exact });
    }
    return native !== null && ssl !== null && canGoNative(client)
      ? shakeNatively(client, { native, context: ssl, exact })
      : byNode(client, node, exact);
  };
  return {
    contexts: live,
    async accept(client, { signal, bypassable = false } = {}) {
      try {
        return await finishHandshake(begin(client, bypassable), options.clientAuthType, signal);
      } catch (error) {
        client.destroy();
        throw error;
      }
    },
    [Symbol.dispose]: () => live[Symbol.dispose](),
  };
}

/** A handshake that is under way: `stream` emits `secure` when it is done, where it is not yet. */
export interface Shaking {
  readonly isDone: boolean;
  readonly stream: Duplex;
  /** What to destroy with it. */
  readonly below: Duplex;
  /** Asked for once it is done. */
  facts(): HandshakeFacts;
}

export interface HandshakeFacts extends Omit<TlsAccepted, "stream"> {
  /** Did the client show a certificate, and why does the library refuse it? */
  readonly client: { readonly given: boolean; readonly refusal: string | null };
}

function finishHandshake(
  { stream, below, isDone, facts }: Shaking,
  clientAuthType: ClientAuthType,
  signal: AbortSignal | undefined,
): Promise<TlsAccepted> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => fail(new ProtocolError("no TLS handshake within 30 s")),
      HANDSHAKE_TIMEOUT_MS,
    );
    const stop = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      stream.off("error", onError).off("close", onClose).off("end", onClose).off("secure", onSecure);
    };
    const fail = (failure: Error) => {
      stop();
      stream.destroy();
      below.destroy();
      reject(failure);
    };
    const onError = (cause: Error) => fail(new ProtocolError(`TLS handshake: ${cause.message}`, { cause }));
    const onClose = () =>
      fail(new ProtocolError("the client closed the connection during the TLS handshake"));
    const onAbort = () => fail(new ProtocolError("aborted during the TLS handshake"));
    const onSecure = () => {
      const { client, ...accepted } = facts();
      const refused = refusal(client, clientAuthType);
      if (refused !== null) return fail(refused);
      stop();
      resolve({ ...accepted, stream });
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    // Stays for good: a second fault, or one before the caller's own listener, must not end the process.
    stream.on("error", () => {});
    stream.on("error", onError).on("close", onClose).on("end", onClose).on("secure", onSecure);
    if (signal?.aborted === true) onAbort();
    else if (isDone) onSecure();
  });
}

function refusal({ given, refusal: why }: HandshakeFacts["client"], type: ClientAuthType): Error | null {
  if (type === "" || type === "request") return null;
  if (!given) return REQUIRING.has(type) ? new AuthError("the client showed no certificate") : null;
  if (!VERIFYING.has(type) || why === null) return null;
  return new AuthError(`the client's certificate is refused: ${why}`);
}
