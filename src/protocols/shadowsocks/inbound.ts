import type { Duplex } from "node:stream";
import { ConfigError, messageOf, ProtocolError } from "#core/errors.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import { type Destination, destinationText, type Endpoint } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { type Arrival, arrivalOf, describe, guardErrors, streamSession } from "#net/accept.ts";
import { CodecStream } from "#net/codec-stream.ts";
import { discardInput, readHandshake } from "#net/read-handshake.ts";
import { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import { LiveUsers } from "#protocols/live-users.ts";
import { acceptMux, isMux } from "#protocols/mux/inbound.ts";
import { acceptUdpOverTcp, versionOf } from "#protocols/udp-over-tcp/index.ts";
import { serveDatagrams } from "./inbound-udp.ts";
import { findMethod, type Method } from "./methods.ts";
import type { InboundOptions } from "./options.ts";
import { type Request, serverHandshake } from "./server-handshake.ts";
import { type ServerKeys, serverKeys } from "./server-keys.ts";
import { CHANCE } from "./sip022.ts";

/** How long a peer that does not fit is read on in silence: what servers without this habit do with slow clients. */
const SILENCE_MS = 60_000;
/** Salts that are remembered, in two generations of so many. */
const SALTS = 131_072;
/** The 2022 edition knows the time, so a salt need not be remembered beyond the skew in both directions. */
const SALT_WINDOW_MS = 60_000;

/** Listens for clients of one cipher. Throws `ConfigError` for keys that do not fit it. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const server = new Server(options, env);
  const endpoints: Endpoint[] = [...(await env.listenTcp((socket) => void server.serve(socket)))];
  if (options.udp) await env.listenUdp((socket) => server.serveDatagrams(socket));
  return {
    name: env.name,
    type: "ShadowSocks",
    endpoints,
    replaceUsers: (users) => server.replaceUsers(users),
    async [Symbol.asyncDispose]() {}, // the sockets are the host's, and accepted sessions go on
  };
}

class Server {
  readonly #muxOptions: InboundOptions["mux-option"];
  readonly #method: Method;
  readonly #password: string;
  readonly #env: InboundEnv;
  readonly #salts: ReplayFilter;
  readonly #live = new LiveUsers();
  #keys: ServerKeys;

  constructor({ cipher, password, users, "mux-option": mux }: InboundOptions, env: InboundEnv) {
    this.#muxOptions = mux;
    this.#method = findMethod(cipher) as Method;
    this.#password = password;
    this.#env = env;
    this.#keys = serverKeys(this.#method, password, users ?? null);
    const windowMs = this.#method.edition === "2022" ? SALT_WINDOW_MS : Infinity;
    this.#salts = new ReplayFilter({ capacity: SALTS, windowMs, now: () => performance.now() });
  }

  replaceUsers(users: readonly User[]): void {
    const keys = serverKeys(this.#method, this.#password, users); // throws: nothing has changed
    if (this.#keys.candidates.some(({ user }) => user === null))
      throw new ConfigError(`listener ${this.#env.name}: its one key knows no users`);
    const before = new Map(this.#keys.candidates.map(({ user, key }) => [user, key]));
    const now = new Map(keys.candidates.map(({ user, key }) => [user, key]));
    this.#keys = keys;
    this.#live.retain((user) => before.get(user)?.equals(now.get(user) ?? Buffer.alloc(0)) === true);
  }

  serveDatagrams(socket: Parameters<typeof serveDatagrams>[0]): void {
    serveDatagrams(socket, this.#env, () => this.#keys, this.#live);
  }

  async serve(socket: StreamSocket): Promise<void> {
    guardErrors(socket);
    const arrival = arrivalOf(socket);
    if (arrival === null) return;
    const keys = this.#keys;
    try {
      const step = serverHandshake(keys, this.#salts, CHANCE);
      this.#accept(socket, arrival, await readHandshake(socket, step, SILENCE_MS));
    } catch (error) {
      this.#env.log.debug(() => `listener ${this.#env.name}: ${arrival.source.ip}: ${messageOf(error)}`);
      if (error instanceof ProtocolError) discardInput(socket, SILENCE_MS);
      else socket.destroy();
    }
  }

  #accept(socket: StreamSocket, arrival: Arrival, { destination, user, codec, payload }: Request): void {
    const stream = new CodecStream(socket, codec, { discardOnFaultMs: SILENCE_MS });
    guardErrors(stream);
    if (payload.length > 0) stream.unshift(payload);
    this.#track(user, stream);
    const about = (network: "tcp" | "udp", to: Destination) =>
      describe(this.#env, arrival, { network, type: "ShadowSocks", user, destination: to });
    const onStream = (sub: Duplex, to: Destination, tell: (failure: Error | null) => void): void => {
      const version = versionOf(to);
      if (version === null) return this.#env.accept(streamSession(about("tcp", to), sub, tell));
      tell(null);
      void acceptUdpOverTcp(sub, version, (first) => about("udp", first), this.#env.accept);
    };
    if (isMux(destination))
      return acceptMux(stream, {
        options: this.#muxOptions,
        onStream,
        onFlow: (flow, to) => this.#env.accept({ network: "udp", metadata: about("udp", to), flow }),
        log: this.#env.log,
      });
    this.#env.log.debug(
      () => `listener ${this.#env.name}: ${user ?? "client"} asks for ${destinationText(destination)}`,
    );
    // The protocol has no answer to a dial: success is the first byte, failure the end.
    onStream(stream, destination, (failure) => void (failure !== null && stream.destroy()));
  }

  #track(user: string | null, stream: Duplex): void {
    const tracked = this.#live.add(user, () => stream.destroy());
    stream.once("close", () => tracked[Symbol.dispose]());
  }
}
