/** DNS over QUIC and over HTTP/3 for clients, on UDP sockets of their own. */
import type { InboundEnv } from "#core/inbound.ts";
import type { Endpoint } from "#core/session.ts";
import { type Bounds, PerClientLimiter } from "#lib/in-flight.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { Cubic } from "#transport/quic/congestion/cubic.ts";
import type { QuicServerConnection, QuicServerEvents } from "#transport/quic/server/connection.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import type { QuicTlsServer } from "#transport/quic/server/tls.ts";
import { ClientQuestions, type QuestionsEnv } from "./client-questions.ts";
import { DOQ, DoqServer } from "./doq-server.ts";
import { Doh3Server, EXCESSIVE_LOAD } from "./doh3-server.ts";

/** Connections whose handshake is done. At the bound a new one is closed. */
const CONNECTIONS: Bounds = { all: 4096, ofOne: 256 };
const IDLE_MS = 30_000;
/** Of a connection; a question and its length have 64 KiB at most. */
const WINDOWS = { maxData: 256 * 1024, maxStreamDataBidiRemote: 66 * 1024, maxStreamDataUni: 8 * 1024 };
/** Questions of one connection at a time; a client that has more waits. */
const STREAMS = { maxStreamsBidi: 100, maxStreamsUni: 8 };

/** What a socket may speak. */
export const quicDnsAlpn = {
  doq: [DOQ.alpn],
  http3: [HTTP3_ALPN],
  both: [DOQ.alpn, HTTP3_ALPN],
} as const;

export interface QuicDnsEnv extends Pick<InboundEnv, "listenUdp" | "memory">, QuestionsEnv {
  readonly tls: QuicTlsServer;
}

/** Answers questions on the given sockets and returns their addresses. Connections outlive the listener. */
export function openQuicDnsServer(env: QuicDnsEnv): Promise<readonly Endpoint[]> {
  const connections = new PerClientLimiter(CONNECTIONS);
  const ports = env.memory?.of(QuicPorts) ?? new QuicPorts();
  return env.listenUdp(
    (socket) =>
      void ports.open(socket, {
        ciphers: env.tls.ciphers,
        openTls: env.tls.open,
        numbers: { idleTimeoutMs: IDLE_MS, maxDatagramFrame: 0, ...WINDOWS, ...STREAMS },
        abortCode: DOQ.internalError,
        closeCode: DOQ.noError,
        makeCongestion: () => new Cubic(),
        filter: null,
        onConnection: (client) => serve(client, connections, env),
      }),
  );
}

function serve(
  client: QuicServerConnection,
  connections: PerClientLimiter,
  env: QuicDnsEnv,
): QuicServerEvents {
  const isHttp = client.alpn === HTTP3_ALPN;
  const questions = new ClientQuestions(client, env);
  const server = isHttp
    ? new Doh3Server(client.connection, questions)
    : new DoqServer(client.connection, questions);
  const onConnected = (): void => {
    const { ip } = client.peer;
    client.settle(); // its address is proved, and the number of those is bounded here
    if (connections.enter(ip)) return void client.closed.then(() => connections.leave(ip));
    setImmediate(() => client.connection.close(isHttp ? EXCESSIVE_LOAD : DOQ.excessiveLoad, ""));
  };
  if (client.isConnected) onConnected();
  return { onStream: (stream) => server.onStream(stream), onDatagram() {}, onConnected };
}
