import { Duplex } from "node:stream";
import type { SafeFiles } from "#core/files.ts";
import type { TlsContextSource, TlsWorkerConnection } from "#core/held.ts";
import type { Log } from "#core/log.ts";
import { nativeTls, type NativeTls } from "#platform/tls.ts";
import { openLiveContexts } from "./live-contexts.ts";
import { canGoNative, goOnShaking, shakeNatively } from "./native-server.ts";
import { nodeAcceptor } from "./node-server.ts";
import type { TlsServerOptions } from "./server-options.ts";
import { type TlsAccepted, type Shaking, finishHandshake } from "./server-handshake.ts";

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
