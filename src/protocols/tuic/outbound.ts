import { DialError } from "#core/errors.ts";
import { BOTH_NETWORKS, TCP_ONLY } from "#core/outbound.ts";
import type { DialContext, Outbound, OutboundEnv } from "#core/outbound.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { quicLibrary } from "#platform/quic.ts";
import { QuicSessions } from "#transport/quic/sessions.ts";
import { clientFlow, magicDestination } from "#protocols/udp-over-tcp/index.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { readQuicTlsClient } from "#transport/quic/native-tls.ts";
import type { OpenQuicTls } from "#transport/quic/tls.ts";
import type { TransportNumbers } from "#transport/quic/wire/transport-parameters.ts";
import { makeCongestion } from "#transport/quic/congestion/choice.ts";
import { congestionOf } from "./congestion.ts";
import { type OutboundOptions, uuidBytes } from "./options.ts";
import { TuicSession } from "./session.ts";
import { UUID_BYTES } from "./wire.ts";

const DEFAULT_HEARTBEAT_MS = 10_000;
const DEFAULT_TIMEOUT_MS = 8000;
const DEFAULT_STREAMS = 100;
const DEFAULT_PACKET_BYTES = 1252;
/** Every way of QUIC carries datagrams of this size (RFC 9000 §14). */
const LEAST_DATAGRAM_BYTES = 1200;

/** Throws `ConfigError` for keys that do not fit, and where this runtime has no QUIC. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  const { name, log } = env;
  const openTls = await readTls(options, env);
  if (options["reduce-rtt"])
    log.warning(`proxy ${name}: reduce-rtt: there is no 0-RTT; the handshake takes a round trip`);
  const sessions = new QuicSessions({
    node: name,
    timeoutMs: options["request-timeout"] || DEFAULT_TIMEOUT_MS,
    open: (signal) => openSession(options, env, openTls, signal),
  });
  const connect = (destination: Destination, { signal }: DialContext) =>
    sessions.open(signal, (session) => session.connect(destination, signal));
  const version = options["udp-over-stream-version"] === 2 ? 2 : 1;
  return {
    name,
    type: "Tuic",
    networks: options.udp ? BOTH_NETWORKS : TCP_ONLY,
    sendsDatagrams: true,
    connect,
    async associate(destination, context): Promise<DatagramFlow> {
      if (!options.udp) throw new DialError("unsupported", `${name}: udp is not enabled for this proxy`);
      if (!options["udp-over-stream"]) return (await sessions.get(context.signal)).associate();
      return clientFlow(await connect(magicDestination(version), context), version, destination);
    },
    [Symbol.asyncDispose]: () => sessions.retire(),
  };
}

/** Without SNI the certificate must still be for the name that SNI would have had. */
function readTls(options: OutboundOptions, env: OutboundEnv): Promise<OpenQuicTls> {
  const { name, files, trust } = env;
  const expected = options["name-cert-verify"] || options.sni || options.server;
  return readQuicTlsClient(options["disable-sni"] ? { ...options, "name-cert-verify": expected } : options, {
    node: name,
    server: options["disable-sni"] ? "" : options.server,
    serverName: options["disable-sni"] ? "" : options.sni,
    defaultAlpn: [HTTP3_ALPN],
    files,
    trust,
    portable: !env.tls.allowsQuic,
  });
}

async function openSession(
  options: OutboundOptions,
  env: OutboundEnv,
  openTls: OpenQuicTls,
  signal: AbortSignal,
): Promise<TuicSession> {
  const { name, dialer, log } = env;
  const library = quicLibrary();
  if (library === null) throw new DialError("unsupported", `${name}: this runtime has no QUIC`);
  const server = toDestination(options.ip ?? options.server, options.port);
  const flow = await dialer.associate(server, { signal, metadata: null });
  return TuicSession.open(
    {
      node: name,
      uuid: uuidBytes(options.uuid) ?? new Uint8Array(UUID_BYTES),
      password: options.password,
      udpMode: options["udp-relay-mode"] === "quic" ? "quic" : "native",
      mostPacketBytes: options["max-udp-relay-packet-size"] || DEFAULT_PACKET_BYTES,
      mostStreams: options["max-open-streams"] || DEFAULT_STREAMS,
      heartbeatMs: options["heartbeat-interval"] || DEFAULT_HEARTBEAT_MS,
      onRefused: (why) => log.warning(`proxy ${name}: the server has ended the connection: ${why}`),
      quic: {
        flow,
        server,
        filter: null,
        ciphers: library.ciphers,
        openTls,
        congestion: makeCongestion(congestionOf(options)),
        ...(options["disable-mtu-discovery"] ? { mostDatagramBytes: LEAST_DATAGRAM_BYTES } : {}),
        numbers: numbersOf(options),
      },
    },
    signal,
  );
}

function numbersOf(options: OutboundOptions): Partial<TransportNumbers> {
  const stream = options["recv-window"];
  const connection = options["recv-window-conn"];
  const datagram = options["max-datagram-frame-size"];
  return {
    ...(stream === undefined ? {} : { maxStreamDataBidiLocal: stream }),
    ...(connection === undefined ? {} : { maxData: connection }),
    ...(datagram === undefined ? {} : { maxDatagramFrame: datagram }),
  };
}
