/** XHTTP over HTTP/3: the QUIC side of a listener. */
import type { Duplex } from "node:stream";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { NO_ERROR, REQUEST_CANCELLED } from "#transport/http3/request.ts";
import { Http3Server, type Http3Answer, type Http3Request } from "#transport/http3/server.ts";
import { type OnTunnel, REQUEST_BYTES } from "#transport/bearer.ts";
import { MAX_STREAMS } from "#transport/http2/windows.ts";
import { pathOf } from "#transport/http-head.ts";
import { Bbr } from "#transport/quic/congestion/bbr.ts";
import { OWN_NUMBERS } from "#transport/quic/connection-options.ts";
import type { QuicServerConnection, QuicServerEvents } from "#transport/quic/server/connection.ts";
import type { QuicServerOptions } from "#transport/quic/server/endpoint.ts";
import { openQuicTlsServer, type QuicTlsServerContext } from "#transport/quic/server/tls.ts";
import type { TlsServerFields } from "#transport/tls/fields.ts";
import { http3Exchange } from "./exchange.ts";
import type { XhttpServer } from "./server.ts";

/** As of HTTP/2: a connection without packets ends behind so long, where the client does not say less. */
const IDLE_MS = 300_000;
/** What clients may send ahead that have not shown who they are. */
const UNAUTHENTICATED_WINDOW_BYTES = 64 * 1024;

/** What clients reach over UDP. Disposing it stops watching the certificate; connections go on. */
export interface QuicCarrier extends Disposable {
  /** Of the listener's endpoint. `on` owns each tunnel that a client opens. */
  options(
    on: (client: QuicServerConnection, tunnel: Duplex, onAuthenticated: () => void) => void,
  ): QuicServerOptions;
}

/** Throws `ConfigError` where there is no certificate, keys do not fit together, or this runtime has no QUIC. */
export async function openXhttpQuic(
  fields: TlsServerFields,
  xhttp: XhttpServer,
  context: Omit<QuicTlsServerContext, "alpn">,
): Promise<QuicCarrier> {
  const tls = await openQuicTlsServer(fields, { ...context, alpn: [HTTP3_ALPN] });
  return {
    options: (on) => ({
      ciphers: tls.ciphers,
      openTls: tls.open,
      numbers: {
        idleTimeoutMs: IDLE_MS,
        maxData: UNAUTHENTICATED_WINDOW_BYTES,
        maxStreamsBidi: MAX_STREAMS,
        maxDatagramFrame: 0,
      },
      abortCode: REQUEST_CANCELLED,
      closeCode: NO_ERROR,
      makeCongestion: () => new Bbr(),
      filter: null,
      onConnection: (client) =>
        serve(client, xhttp, (tunnel, onAuthenticated) => on(client, tunnel, onAuthenticated)),
    }),
    [Symbol.dispose]: () => tls[Symbol.dispose](),
  };
}

function serve(client: QuicServerConnection, xhttp: XhttpServer, on: OnTunnel): QuicServerEvents {
  const by = {
    get source() {
      return client.peer;
    },
    settle: () => settle(client),
  };
  const answer = async (request: Http3Request): Promise<Http3Answer> => {
    const path = pathOf(request.path);
    if (!xhttp.owns(path)) return { status: 404, fields: [], body: null };
    const { exchange, answer: decided } = http3Exchange(request);
    xhttp.serve(exchange, path, on, by);
    return decided;
  };
  const server = new Http3Server(client.connection, { answer });
  client.grow(UNAUTHENTICATED_WINDOW_BYTES);
  return {
    onStream(stream) {
      client.grow(REQUEST_BYTES);
      stream.once("close", () => client.grow(-REQUEST_BYTES));
      server.take(stream);
    },
    onDatagram() {},
  };
}

/** The client has shown who it is. */
function settle(client: QuicServerConnection): void {
  if (client.isSettled) return; // by another tunnel
  client.settle();
  client.connection.widen(OWN_NUMBERS.maxData);
}
