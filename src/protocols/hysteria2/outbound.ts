import { randomInt } from "node:crypto";
import { ConfigError, DialError } from "#core/errors.ts";
import { BOTH_NETWORKS, TCP_ONLY } from "#core/outbound.ts";
import type { Outbound, OutboundEnv } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { type QuicLibrary, quicLibrary } from "#platform/quic.ts";
import { QuicSessions } from "#transport/quic/sessions.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { Bbr } from "#transport/quic/congestion/bbr.ts";
import { readQuicTlsClient } from "#transport/quic/native-tls.ts";
import type { OpenQuicTls } from "#transport/quic/tls.ts";
import { bbrProfile, type OutboundOptions, receiveWindows } from "./options.ts";
import { openObfs } from "./obfs.ts";
import { Hysteria2Session } from "./session.ts";

const KEEP_ALIVE_MS = 10_000;
const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_HOP_SECONDS = { from: 30, to: 30 };

/** Throws `ConfigError` for keys that do not fit, and where this runtime has no QUIC. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  const { name, files, trust } = env;
  openObfs(options, `proxy ${name}`);
  const openTls = await readQuicTlsClient(options, {
    node: name,
    server: options.server,
    serverName: options.sni,
    defaultAlpn: [HTTP3_ALPN],
    files,
    trust,
    portable: !env.tls.allowsQuic,
  });
  const library = quicLibrary();
  if (library === null) throw new ConfigError(`proxy ${name}: type: this runtime has no QUIC`);
  const client = new Client(options, env, openTls, library);
  return {
    name,
    type: "Hysteria2",
    networks: options.udp ? BOTH_NETWORKS : TCP_ONLY,
    sendsDatagrams: true,
    connect: (destination, { signal }) =>
      client.sessions.open(signal, (session) => session.connect(destination, signal)),
    async associate(_destination, { signal }) {
      if (!options.udp) throw new DialError("unsupported", `${name}: udp is not enabled for this proxy`);
      return (await client.sessions.get(signal)).associate();
    },
    [Symbol.asyncDispose]: () => client.retire(),
  };
}

class Client {
  readonly #options: OutboundOptions;
  readonly #env: OutboundEnv;
  readonly #openTls: OpenQuicTls;
  readonly #library: QuicLibrary;
  readonly #timeoutMs: number;
  readonly sessions: QuicSessions<Hysteria2Session>;

  constructor(options: OutboundOptions, env: OutboundEnv, openTls: OpenQuicTls, library: QuicLibrary) {
    this.#options = options;
    this.#env = env;
    this.#openTls = openTls;
    this.#library = library;
    this.#timeoutMs = options["handshake-timeout"] * 1000 || DEFAULT_TIMEOUT_MS;
    this.sessions = new QuicSessions({
      node: env.name,
      timeoutMs: this.#timeoutMs,
      open: (signal) => this.#dial(signal),
    });
  }

  /** Connections that are open live on. */
  retire(): Promise<void> {
    return this.sessions.retire();
  }

  async #dial(signal: AbortSignal): Promise<Hysteria2Session> {
    const { server, ports } = this.#options;
    const session = await this.#open(toDestination(server, this.#somePort()), signal);
    if (ports !== undefined) this.#hop(session);
    return session;
  }

  async #open(server: Destination, signal: AbortSignal): Promise<Hysteria2Session> {
    const { options, env } = { options: this.#options, env: this.#env };
    const flow = await env.dialer.associate(server, { signal, metadata: null });
    return Hysteria2Session.open(
      {
        node: env.name,
        password: options.password,
        upBytes: options.up,
        downBytes: options.down,
        udpMtu: options["udp-mtu"],
        timeoutMs: this.#timeoutMs,
        quic: {
          node: env.name,
          flow,
          server,
          filter: openObfs(options, `proxy ${env.name}`),
          ciphers: this.#library.ciphers,
          openTls: this.#openTls,
          congestion: new Bbr(bbrProfile(options)),
          keepAliveMs: KEEP_ALIVE_MS,
          numbers: receiveWindows(options),
        },
      },
      signal,
    );
  }

  #somePort(): number {
    const { port = 0, ports = [{ from: port, to: port }] } = this.#options;
    let place = randomInt(ports.reduce((sum, { from, to }) => sum + to - from + 1, 0));
    for (const { from, to } of ports) {
      if (place <= to - from) return from + place;
      place -= to - from + 1;
    }
    return port;
  }

  /** Another port now and then; the connection does not notice. */
  #hop(session: Hysteria2Session): void {
    const { from, to } = this.#options["hop-interval"] ?? DEFAULT_HOP_SECONDS;
    const timer = setTimeout(
      () => {
        if (session.isOver) return;
        session.setPort(this.#somePort());
        this.#hop(session);
      },
      1000 * randomInt(from, to + 1),
    );
    timer.unref();
    void session.closed.then(() => clearTimeout(timer));
  }
}
