import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { asDialError, DialError } from "#core/errors.ts";
import {
  BOTH_NETWORKS,
  TCP_ONLY,
  type DialContext,
  type Outbound,
  type OutboundEnv,
} from "#core/outbound.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import type { SessionRecipe } from "#core/wire-recipe.ts";
import { toDestination } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { clientFlow, magicDestination } from "#protocols/udp-over-tcp/index.ts";
import { type NodeServer, workerDials } from "#protocols/worker-dials.ts";
import { chooseSecurityClient, type SecurityClient } from "#transport/security.ts";
import { ClientSession } from "./client-session.ts";
import type { ClientStream } from "./client-stream.ts";
import { IdlePool } from "./idle-pool.ts";
import type { OutboundOptions } from "./options.ts";
import { DEFAULT_SCHEME } from "./padding.ts";
import { passwordHash } from "./wire.ts";

/** A stream whose session died needs another one within this time; its own dial is long over. */
const RESCUE_TIMEOUT_MS = 10_000;
const CLIENT_NAME = "weir/1";

/** Throws `ConfigError` for TLS keys that do not fit. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  const { name, files, log, trust, tls, resolver } = env;
  const context = {
    node: name,
    server: options.server,
    serverName: options.sni,
    bypassable: false,
    files,
    log,
    trust,
    tls,
    resolver,
  };
  const security = await chooseSecurityClient({ ...options, tls: true }, context);
  const client = new Client(options, env, security);
  return {
    name,
    type: "AnyTLS",
    networks: options.udp ? BOTH_NETWORKS : TCP_ONLY,
    connect: (destination, context) => client.connect(destination, context),
    ...workerDials(client.bare, recipe("anytls", {}), env),
    async associate(destination, context) {
      if (!options.udp) throw new DialError("unsupported", `${name}: udp is not enabled for this proxy`);
      return await client.associate(destination, context);
    },
    [Symbol.asyncDispose]: async () => client[Symbol.dispose](),
  };
}

class Client implements Disposable {
  readonly #env: OutboundEnv;
  readonly #security: SecurityClient;
  readonly #server: Destination;
  readonly #hash: Buffer;
  readonly #clientName: string;
  readonly #reuses: boolean;
  readonly #pool: IdlePool;
  /** For the sessions of threads. */
  readonly #recipe: SessionRecipe;
  #scheme = DEFAULT_SCHEME;
  #sequence = 0;

  constructor(options: OutboundOptions, env: OutboundEnv, security: SecurityClient) {
    this.#env = env;
    this.#security = security;
    this.#server = toDestination(options.server, options.port);
    this.#hash = passwordHash(options.password);
    this.#clientName = (options["client-metadata"] ?? CLIENT_NAME).replaceAll(/[\r\n]/g, " ");
    this.#reuses = !options["disable-reuse"];
    const idle = {
      checkIntervalMs: options["idle-session-check-interval"] * 1000,
      timeoutMs: options["idle-session-timeout"] * 1000,
      minIdle: options["min-idle-session"],
    };
    this.#pool = new IdlePool(idle);
    this.#recipe = {
      id: randomUUID(),
      hash: Uint8Array.from(this.#hash),
      client: this.#clientName,
      scheme: Uint8Array.from(DEFAULT_SCHEME.raw),
      reuses: this.#reuses,
      ...idle,
      gone: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
    };
  }

  /** What threads open sessions over; null: they cannot. */
  get bare(): NodeServer | null {
    const { tls } = this.#security;
    if (tls === null) return null;
    return {
      dialer: this.#env.dialer,
      address: this.#server,
      tls,
      upgrade: null,
      session: this.#recipe,
    };
  }

  async connect(destination: Destination, context: DialContext): Promise<Duplex> {
    if (context.signal.aborted) throw new DialError("aborted", `${this.#env.name}: aborted`);
    const target = encodeSocksAddress(destination);
    const session = this.#pool.take() ?? (await this.#dial(context));
    return session.open(target);
  }

  async associate(destination: Destination, context: DialContext): Promise<DatagramFlow> {
    return clientFlow(await this.connect(magicDestination(2), context), 2, destination);
  }

  async #dial(context: DialContext): Promise<ClientSession> {
    const dial = (): Promise<Duplex> => this.#env.dialer.connect(this.#server, context);
    const { stream } = await this.#security.open(await dial(), context.signal, dial);
    if (stream.destroyed) throw new DialError("failed", `${this.#env.name}: the server hung up at once`);
    return new ClientSession(stream, {
      hash: this.#hash,
      scheme: this.#scheme,
      client: this.#clientName,
      sequence: this.#sequence++,
      events: {
        scheme: (scheme) => (this.#scheme = scheme),
        idle: (session) => (this.#reuses ? this.#pool.put(session) : session.close(null)),
        closed: (session) => this.#pool.remove(session),
        stranded: (stream) => void this.#rescue(stream),
      },
    });
  }

  /** A fresh session for a stream that an idle one took down with it. */
  async #rescue(stream: ClientStream): Promise<void> {
    try {
      const session = await this.#dial({ signal: AbortSignal.timeout(RESCUE_TIMEOUT_MS), metadata: null });
      if (stream.destroyed) this.#pool.put(session);
      else session.adopt(stream);
    } catch (error) {
      stream.destroy(asDialError(error, this.#env.name));
    }
  }

  [Symbol.dispose](): void {
    Atomics.store(new Int32Array(this.#recipe.gone), 0, 1);
    this.#pool[Symbol.dispose]();
  }
}
