/** XHTTP over HTTP/3: the client of a node, and what its requests travel through. */
import { ConfigError } from "#core/errors.ts";
import type { OutboundEnv } from "#core/outbound.ts";
import { toDestination } from "#net/address/ip.ts";
import { quicLibrary } from "#platform/quic.ts";
import { Http3Exchanges } from "#transport/http3/exchanges.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { Bbr } from "#transport/quic/congestion/bbr.ts";
import { readQuicTlsClient } from "#transport/quic/native-tls.ts";
import type { SecurityClientFields } from "#transport/security.ts";
import type { TransportClient, TransportClientOptions } from "#transport/transport-client.ts";
import { openXhttpStream } from "./client.ts";
import { xhttpOf } from "./settings.ts";

const TIMEOUT_MS = 8000;
const KEEP_ALIVE_MS = 10_000;

/** A node asks for it by an `alpn` of nothing but `h3`, as its peers have it. */
export function asksForHttp3({ alpn }: Pick<SecurityClientFields, "alpn">): boolean {
  return alpn?.length === 1 && alpn[0] === HTTP3_ALPN;
}

/** Throws `ConfigError`: no TLS, REALITY, keys that do not fit, or no QUIC in this runtime. */
export async function openXhttp3(
  options: TransportClientOptions,
  env: OutboundEnv,
): Promise<TransportClient> {
  const http = await openExchanges(options, env);
  const xhttp = xhttpOf(options, "https");
  return {
    security: "tls",
    bare: null,
    sendsDatagrams: true,
    connect: async (context) => ({
      stream: await openXhttpStream(http, xhttp, context),
      alpn: HTTP3_ALPN,
      serverName: options.serverName ?? options.server,
      bypass: null,
    }),
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  };
}

async function openExchanges(options: TransportClientOptions, env: OutboundEnv): Promise<Http3Exchanges> {
  const { name, dialer, files, trust } = env;
  if (!options.tls) throw new ConfigError(`proxy ${name}: xhttp over HTTP/3 needs tls: true`);
  if (options["reality-opts"] !== undefined)
    throw new ConfigError(`proxy ${name}: reality-opts: REALITY is not spoken over HTTP/3`);
  const openTls = await readQuicTlsClient(options, {
    node: name,
    server: options.server,
    serverName: options.serverName,
    files,
    trust,
    portable: !env.tls.allowsQuic,
  });
  const library = quicLibrary();
  if (library === null) throw new ConfigError(`proxy ${name}: alpn: this runtime has no QUIC`);
  const server = toDestination(options.server, options.port);
  return new Http3Exchanges({
    node: name,
    timeoutMs: TIMEOUT_MS,
    dial: async (signal) => ({
      flow: await dialer.associate(server, { signal, metadata: null }),
      server,
      filter: null,
      ciphers: library.ciphers,
      openTls,
      congestion: new Bbr(),
      keepAliveMs: KEEP_ALIVE_MS,
    }),
  });
}
