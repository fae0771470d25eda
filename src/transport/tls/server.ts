import type { Duplex } from "node:stream";
import type { SafeFiles } from "#core/files.ts";
import type { AcceptedConnection, OffloadedTls } from "#core/accepted.ts";
import type { TlsContextSource } from "#core/tls-contexts.ts";
import type { Log } from "#core/log.ts";
import { nativeTls, type NativeTls } from "#platform/tls.ts";
import { openLiveContexts } from "./live-contexts.ts";
import { canGoNative, continueHandshake, acceptNatively } from "./native-server.ts";
import { nodeAcceptor } from "./node-server.ts";
import type { TlsServerOptions } from "./server-options.ts";
import { type TlsAccepted, type Handshake, finishHandshake } from "./server-handshake.ts";

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
  accept(stream: Duplex, options?: AcceptOptions): Promise<TlsAccepted>;
  /** The same for a connection, whose handshake a worker may have begun. */
  acceptConnection(connection: AcceptedConnection, options?: AcceptOptions): Promise<TlsAccepted>;
}

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
  const begin = (stream: Duplex, exact: boolean): Handshake => {
    const { node, ssl } = live.current();
    return native !== null && ssl !== null && canGoNative(stream)
      ? acceptNatively(stream, { native, context: ssl, exact })
      : byNode(stream, node, exact);
  };
  const resume = (handshake: OffloadedTls, exact: boolean): Handshake => {
    const { ssl } = live.current();
    if (native === null || ssl === null) throw new Error("a handshake of another library");
    return continueHandshake(handshake, { native, context: ssl, exact });
  };
  const finish = async (
    client: { destroy(): void },
    handshake: () => Handshake,
    signal?: AbortSignal,
  ): Promise<TlsAccepted> => {
    try {
      return await finishHandshake(handshake(), options.clientAuthType, signal);
    } catch (error) {
      client.destroy();
      throw error;
    }
  };
  return {
    contexts: live,
    accept: (stream, { signal, bypassable = false } = {}) =>
      finish(stream, () => begin(stream, bypassable), signal),
    acceptConnection: (connection, { signal, bypassable = false } = {}) => {
      const { tls } = connection;
      const handshake = () =>
        tls === null ? begin(connection.stream(), bypassable) : resume(tls, bypassable);
      return finish(connection, handshake, signal);
    },
    [Symbol.dispose]: () => live[Symbol.dispose](),
  };
}
