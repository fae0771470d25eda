/** What the http and socks5 outbounds have in common: reaching the proxy, TLS on the way, one handshake with a deadline. */
import type { Duplex } from "node:stream";
import { ABORTED, asDialError, DialError } from "#core/errors.ts";
import type { DialContext, OutboundEnv } from "#core/outbound.ts";
import { guardErrors } from "#net/listen/accept.ts";
import { HANDSHAKE_TIMEOUT_MS } from "#net/stream/byte-reader.ts";
import { toDestination } from "#net/address/ip.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import type { TlsClientFields } from "#transport/tls/fields.ts";

export interface LinkOptions extends TlsClientFields {
  readonly server: string;
  readonly port: number;
  readonly tls: boolean;
  readonly sni?: string | undefined;
}

export interface ProxyLink {
  readonly server: string;
  /** Which proxy, for error messages. */
  readonly where: string;
  /**
   * Connects, then lets `handshake` speak. Throws `DialError`; the connection is gone then. `signal` ends with the
   * dial's own or after 30 s.
   */
  open<T>(context: DialContext, handshake: (stream: Duplex, signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** `alpn` is offered where the node has no list of its own. Throws `ConfigError` where the TLS options cannot be used. */
export async function openProxyLink(
  options: LinkOptions,
  env: OutboundEnv,
  alpn: readonly string[] = [],
): Promise<ProxyLink> {
  const { server, port } = options;
  const { name: node, dialer } = env;
  const where = `proxy ${node}`;
  const destination = toDestination(server, port);
  const read = { ...env, node, server, serverName: options.sni, defaultAlpn: alpn };
  const tls = options.tls ? env.tls.makeClient(await readTlsClient(options, read), env.log) : null;
  return {
    server,
    where,
    async open(context, handshake) {
      const dial = (): Promise<Duplex> => dialer.connect(destination, context);
      let stream = await dial();
      const deadline = new AbortController();
      const timer = setTimeout(() => deadline.abort(ABORTED), HANDSHAKE_TIMEOUT_MS);
      const signal = AbortSignal.any([context.signal, deadline.signal]);
      try {
        guardErrors(stream);
        if (tls !== null) {
          ({ stream } = await tls.open(stream, { signal, redial: dial }));
          guardErrors(stream);
        }
        return await handshake(stream, signal);
      } catch (error) {
        stream.destroy();
        if (deadline.signal.aborted && !context.signal.aborted)
          throw new DialError("timeout", `${where}: no answer within ${HANDSHAKE_TIMEOUT_MS} ms`, {
            cause: error,
          });
        throw asDialError(error, where);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
