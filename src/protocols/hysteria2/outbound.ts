import { randomInt } from "node:crypto";
import { ConfigError, DialError } from "#core/errors.ts";
import { BOTH_NETWORKS, TCP_ONLY } from "#core/outbound.ts";
import type { DialContext, Outbound, OutboundEnv } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { type QuicLibrary, quicLibrary } from "#platform/quic.ts";
import { HTTP3_ALPN } from "#transport/http3/request.ts";
import { Bbr, type BbrProfile } from "#transport/quic/congestion/bbr.ts";
import { readQuicTlsClient } from "#transport/quic/native-tls.ts";
import type { OpenQuicTls } from "#transport/quic/tls.ts";
import type { OutboundOptions } from "./options.ts";
import { LEAST_PASSWORD_BYTES, salamander } from "./salamander.ts";
import { Hysteria2Session } from "./session.ts";

const KEEP_ALIVE_MS = 10_000;
const DEFAULT_TIMEOUT_MS = 10_000;
/** How long the end of a node waits for the last bytes of its connection. */
const MOST_END_MS = 500;
const DEFAULT_HOP_SECONDS = { from: 30, to: 30 };

/** Throws `ConfigError` for keys that do not fit, and where this runtime has no QUIC. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  const { name, files, trust } = env;
  if (options.obfs === "gecko")
    throw new ConfigError(`proxy ${name}: obfs: gecko is not in this build; salamander is`);
  if (options.obfs !== "" && Buffer.byteLength(options["obfs-password"]) < LEAST_PASSWORD_BYTES)
    throw new ConfigError(
      `proxy ${name}: obfs-password: salamander needs at least ${LEAST_PASSWORD_BYTES} bytes`,
    );
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
    connect: async (destination, context) =>
      (await client.session(context)).connect(destination, context.signal),
    async associate(_destination, context) {
      if (!options.udp) throw new DialError("unsupported", `${name}: udp is not enabled for this proxy`);
      return (await client.session(context)).associate();
    },
    [Symbol.asyncDispose]: () => client.retire(),
  };
}

/** Has one connection to its server, which all share; another one when that is over. */
class Client {
  readonly #options: OutboundOptions;
  readonly #env: OutboundEnv;
  readonly #openTls: OpenQuicTls;
  readonly #library: QuicLibrary;
  readonly #timeoutMs: number;
  #session: Promise<Hysteria2Session> | null = null;

  constructor(options: OutboundOptions, env: OutboundEnv, openTls: OpenQuicTls, library: QuicLibrary) {
    this.#options = options;
    this.#env = env;
    this.#openTls = openTls;
    this.#library = library;
    this.#timeoutMs = options["handshake-timeout"] * 1000 || DEFAULT_TIMEOUT_MS;
  }

  /** Throws `DialError`. The dial goes on where one caller gives up: others may wait for it, too. */
  async session({ signal }: DialContext): Promise<Hysteria2Session> {
    const first = this.#session ?? this.#begin();
    const known = await this.#waitFor(first, signal);
    if (!known.isOver) return known;
    // Of those who find it over together, the first dials for all.
    if (this.#session === first) this.#session = null;
    return this.#waitFor(this.#session ?? this.#begin(), signal);
  }

  #begin(): Promise<Hysteria2Session> {
    const made = this.#dial();
    this.#session = made;
    made.catch(() => {
      if (this.#session === made) this.#session = null;
    });
    return made;
  }

  #waitFor(session: Promise<Hysteria2Session>, signal: AbortSignal): Promise<Hysteria2Session> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(new DialError("aborted", `${this.#env.name}: aborted`));
      if (signal.aborted) return onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      session.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    });
  }

  async #dial(): Promise<Hysteria2Session> {
    const { server, port, ports } = this.#options;
    const first = ports === undefined ? port : this.#somePort();
    const target = toDestination(server, first);
    const signal = AbortSignal.timeout(this.#timeoutMs);
    const session = await this.#open(target, signal);
    if (ports !== undefined) this.#hop(session);
    return session;
  }

  async #open(server: Destination, signal: AbortSignal): Promise<Hysteria2Session> {
    const { options, env } = { options: this.#options, env: this.#env };
    const flow = await env.dialer.associate(server, { signal, metadata: null });
    const numbers = {
      ...window(
        "maxStreamDataBidiLocal",
        options["max-stream-receive-window"] ?? options["initial-stream-receive-window"],
      ),
      ...window(
        "maxData",
        options["max-connection-receive-window"] ?? options["initial-connection-receive-window"],
      ),
    };
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
          filter: options.obfs === "" ? null : salamander(options["obfs-password"]),
          ciphers: this.#library.ciphers,
          openTls: this.#openTls,
          congestion: new Bbr(this.#profile()),
          keepAliveMs: KEEP_ALIVE_MS,
          numbers,
        },
      },
      signal,
    );
  }

  #profile(): BbrProfile {
    const profile = this.#options["bbr-profile"];
    return profile === "" ? "standard" : profile;
  }

  #somePort(): number {
    const ranges = this.#options.ports ?? [];
    let place = randomInt(
      Math.max(
        1,
        ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0),
      ),
    );
    for (const { from, to } of ranges) {
      if (place <= to - from) return from + place;
      place -= to - from + 1;
    }
    return this.#options.port;
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

  /**
   * Connections that are open live on; with the last of them the one to the server ends. Waits a moment for that, so that a
   * process that ends can still tell the server.
   */
  async retire(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    if (session === null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, MOST_END_MS);
    session
      .then((opened) => {
        opened.retire();
        return opened.closed;
      })
      .then(() => resolve(), resolve); // who has dialled hears why it failed
    await promise;
    clearTimeout(timer);
  }
}

function window(name: "maxData" | "maxStreamDataBidiLocal", bytes: number | undefined): object {
  return bytes === undefined ? {} : { [name]: bytes };
}
