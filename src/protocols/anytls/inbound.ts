import type { Duplex } from "node:stream";
import { AuthError, ConfigError, messageOf } from "#core/errors.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { Destination, Network } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { type Arrival, arrivalOf, describe, guardErrors, streamSession } from "#net/accept.ts";
import type { ByteQueue } from "#net/byte-queue.ts";
import { readHandshake } from "#net/read-handshake.ts";
import { LiveUsers } from "#protocols/live-users.ts";
import { acceptUdpOverTcp, versionOf } from "#protocols/udp-over-tcp/index.ts";
import { chooseFallback, serveFallback } from "#protocols/vless/fallback.ts";
import { chooseSecurityServer, type Secured, type SecurityServer } from "#transport/security.ts";
import type { InboundOptions } from "./options.ts";
import { DEFAULT_SCHEME, type PaddingScheme, parseScheme } from "./padding.ts";
import { ServerSession, type ServerStream } from "./server-session.ts";
import { type UserTable, userTable } from "./users.ts";
import { HASH_BYTES } from "./wire.ts";

const API_TYPE = "AnyTLS";
const PREAMBLE_TIMEOUT_MS = 30_000;

/** Throws `ConfigError`: users that cannot be told apart, nothing that hides the traffic and no `allow-insecure`. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const users = Object.entries(options.users).map(([id, credential]) => ({ id, credential, flow: null }));
  const where = `listener ${env.name}`;
  const server = new Server(options, env, userTable(users, where));
  const { files, log } = env;
  const security = await chooseSecurityServer(options, {
    where,
    alpn: [],
    bypassable: () => false,
    files,
    log,
  });
  try {
    if (security.kind === "none" && !options["allow-insecure"])
      throw new ConfigError(
        `${where}: anytls hides nothing by itself: set certificate and private-key, or allow-insecure: true`,
      );
    const endpoints = await env.listenTcp((socket) => void server.serve(socket, security));
    return {
      name: env.name,
      type: API_TYPE,
      endpoints,
      replaceUsers: (next) => server.replaceUsers(next),
      [Symbol.asyncDispose]: async () => security[Symbol.dispose](),
    };
  } catch (error) {
    security[Symbol.dispose]();
    throw error;
  }
}

class Server {
  readonly #options: InboundOptions;
  readonly #env: InboundEnv;
  readonly #scheme: PaddingScheme;
  readonly #live = new LiveUsers();
  #users: UserTable;

  constructor(options: InboundOptions, env: InboundEnv, users: UserTable) {
    this.#options = options;
    this.#env = env;
    this.#users = users;
    const scheme = options["padding-scheme"];
    this.#scheme = scheme === "" ? DEFAULT_SCHEME : parseScheme(Buffer.from(scheme));
  }

  replaceUsers(users: readonly User[]): void {
    const next = userTable(users, `listener ${this.#env.name}`); // throws: nothing has changed
    const before = this.#users;
    this.#users = next;
    this.#live.retain((id) => before.hashes.get(id)?.equals(next.hashes.get(id) ?? Buffer.alloc(0)) === true);
  }

  async serve(socket: StreamSocket, security: SecurityServer): Promise<void> {
    guardErrors(socket);
    const arrival = arrivalOf(socket);
    if (arrival === null) return;
    try {
      const secured = await security.accept(socket);
      guardErrors(secured.stream);
      const user = await readHandshake(
        secured.stream,
        (arrived) => this.#greet(arrived),
        PREAMBLE_TIMEOUT_MS,
      );
      if (user instanceof Stranger) await this.#turnAway(secured, arrival, user.first);
      else this.#open(secured.stream, arrival, user);
    } catch (error) {
      this.#env.log.debug(() => `listener ${this.#env.name}: ${arrival.source.ip}: ${messageOf(error)}`);
      socket.destroy();
    }
  }

  /** Takes the preamble of a user; of a stranger nothing, so that a fallback sees all. */
  #greet(arrived: ByteQueue): string | Stranger | null {
    const hash = arrived.peek(HASH_BYTES);
    if (hash === null) return null;
    const user = this.#users.find(hash);
    if (user === null) return new Stranger(Buffer.from(arrived.peek(arrived.length) as Buffer));
    const head = arrived.peek(HASH_BYTES + 2);
    if (head === null) return null;
    const size = head.length + head.readUInt16BE(HASH_BYTES);
    return arrived.take(size) === null ? null : user;
  }

  async #turnAway({ stream, alpn, serverName }: Secured, arrival: Arrival, first: Buffer): Promise<void> {
    const fallback = chooseFallback(this.#options.fallbacks, { alpn, serverName, first });
    if (fallback === null) throw new AuthError("a password that nobody has");
    await serveFallback(stream, fallback, arrival, this.#env.dialer);
  }

  #open(wire: Duplex, arrival: Arrival, user: string): void {
    const session = new ServerSession(wire, {
      scheme: this.#scheme,
      onStream: (stream, destination) => this.#accept(stream, destination, arrival, user),
      onClosed: () => tracked[Symbol.dispose](),
    });
    const tracked = this.#live.add(user, () => session.close(new AuthError("the user was taken away")));
    if (!this.#users.hashes.has(user)) session.close(null); // taken away while it shook hands
  }

  #accept(stream: ServerStream, destination: Destination, arrival: Arrival, user: string): void {
    guardErrors(stream);
    const about = (network: Network, to: Destination) =>
      describe(this.#env, arrival, { network, type: API_TYPE, user, destination: to });
    const version = versionOf(destination);
    if (version !== null) {
      stream.answer(null);
      void acceptUdpOverTcp(stream, version, (to) => about("udp", to), this.#env.accept);
      return;
    }
    const tell = (failure: Error | null): void => stream.answer(failure);
    this.#env.accept(streamSession(about("tcp", destination), stream, tell));
  }
}

/** Somebody without a password of ours, and what was seen of what it sent. */
class Stranger {
  readonly first: Buffer;
  constructor(first: Buffer) {
    this.first = first;
  }
}
