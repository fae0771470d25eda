import type { Duplex } from "node:stream";
import { ConfigError, messageOf, ProtocolError } from "#core/errors.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { DatagramFlow, Destination, Network } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { type Arrival, arrivalOf, describe, guardErrors, streamSession } from "#net/accept.ts";
import { ByteReader } from "#net/byte-reader.ts";
import { decodeSocksAddress } from "#net/socks-address.ts";
import { LiveUsers } from "#protocols/live-users.ts";
import { acceptMux, isMux } from "#protocols/mux/inbound.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import { chooseFallback, serveFallback } from "#protocols/vless/fallback.ts";
import type { Secured } from "#transport/security.ts";
import { openTransportServer, type TransportServer } from "#transport/server.ts";
import type { InboundOptions } from "./options.ts";
import { COMMAND_UDP, decodeRequest, KEY_BYTES, keyOf, packetFraming, type TrojanRequest } from "./wire.ts";

const HANDSHAKE_TIMEOUT_MS = 60_000;
const API_TYPE = "Trojan";

/** Throws `ConfigError`: two users with one password, nothing that hides the traffic and no `allow-insecure`, bad TLS keys. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const where = `listener ${env.name}`;
  const users = options.users.map(({ username, password }, index) => ({
    id: username ?? `${index}`,
    credential: password,
    flow: null,
  }));
  const server = new TrojanServer(options, env, tableOf(users, where));
  const transport = await openTransportServer(options, { name: env.name, files: env.files, log: env.log });
  try {
    if (transport.security === "none" && !options["allow-insecure"])
      throw new ConfigError(
        `${where}: trojan hides nothing by itself: set certificate and private-key, or allow-insecure: true`,
      );
    return await server.listen(transport);
  } catch (error) {
    transport[Symbol.dispose]();
    throw error;
  }
}

/** User names by their keys. Looked up as a whole, so time tells nothing about single characters. */
function tableOf(users: readonly User[], where: string): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const { id, credential } of users) {
    const key = keyOf(credential);
    const other = names.get(key);
    if (other !== undefined)
      throw new ConfigError(`${where}: users ${other} and ${id} have the same password`);
    names.set(key, id);
  }
  return names;
}

type Greeting =
  | { readonly user: string; readonly request: TrojanRequest }
  | { readonly refused: string; readonly first: Buffer };

class TrojanServer {
  readonly #options: InboundOptions;
  readonly #env: InboundEnv;
  readonly #live = new LiveUsers();
  #names: ReadonlyMap<string, string>;

  constructor(options: InboundOptions, env: InboundEnv, names: ReadonlyMap<string, string>) {
    this.#options = options;
    this.#env = env;
    this.#names = names;
  }

  async listen(transport: TransportServer): Promise<ManagedInbound> {
    const endpoints = await this.#env.listenTcp((socket) => this.#serve(socket, transport));
    return {
      name: this.#env.name,
      type: API_TYPE,
      endpoints,
      replaceUsers: (users) => this.#replaceUsers(users),
      [Symbol.asyncDispose]: async () => transport[Symbol.dispose](),
    };
  }

  #replaceUsers(users: readonly User[]): void {
    const next = tableOf(users, `listener ${this.#env.name}`); // throws: nothing has changed
    const keysOf = (names: ReadonlyMap<string, string>) =>
      new Map([...names].map(([key, name]) => [name, key]));
    const [before, after] = [keysOf(this.#names), keysOf(next)];
    this.#names = next;
    this.#live.retain((name) => before.get(name) === after.get(name));
  }

  #serve(socket: StreamSocket, transport: TransportServer): void {
    guardErrors(socket);
    const arrival = arrivalOf(socket);
    if (arrival === null) return void socket.destroy();
    transport.serve(socket, (carried) => {
      guardErrors(carried.stream);
      this.#greet(carried, arrival).catch((error) => {
        this.#env.log.debug(() => `listener ${this.#env.name}: ${arrival.source.ip}: ${messageOf(error)}`);
        carried.stream.destroy();
      });
    });
  }

  async #greet({ stream, serverName, alpn }: Secured, arrival: Arrival): Promise<void> {
    const greeting = await readGreeting(stream, this.#names, this.#options.fallbacks.length > 0);
    if ("user" in greeting) return await this.#accept(stream, arrival, greeting.user, greeting.request);
    const fallback = chooseFallback(this.#options.fallbacks, { serverName, alpn, first: greeting.first });
    if (fallback === null) throw new ProtocolError(greeting.refused);
    await serveFallback(stream, fallback, arrival, this.#env.dialer);
  }

  async #accept(
    stream: Duplex,
    arrival: Arrival,
    user: string,
    { command, destination }: TrojanRequest,
  ): Promise<void> {
    const tracked = this.#live.add(user, () => stream.destroy());
    stream.once("close", () => tracked[Symbol.dispose]());
    const about = (network: Network, to: Destination) =>
      describe(this.#env, arrival, { network, type: API_TYPE, user, destination: to });
    const onFlow = (flow: DatagramFlow, to: Destination) =>
      this.#env.accept({ network: "udp", metadata: about("udp", to), flow });
    const onStream = (sub: Duplex, to: Destination, tell: (failure: Error | null) => void) =>
      this.#env.accept(streamSession(about("tcp", to), sub, tell));
    if (command === COMMAND_UDP) {
      // The request's own address is a placeholder for some peers: the first packet tells.
      const first = await readFirstAddress(stream);
      return onFlow(new StreamFlow(stream, packetFraming("server")), first);
    }
    const { "mux-option": options } = this.#options;
    if (isMux(destination)) return acceptMux(stream, { options, onStream, onFlow, log: this.#env.log });
    // The protocol has no answer to a dial: success is the first byte, failure the end.
    onStream(stream, destination, (failure) => void (failure !== null && stream.destroy()));
  }
}

/** Reads nothing beyond the request; what is refused stays in the stream, for the fallback. */
async function readGreeting(
  stream: Duplex,
  names: ReadonlyMap<string, string>,
  mayFallBack: boolean,
): Promise<Greeting> {
  using reader = new ByteReader(stream, { timeoutMs: HANDSHAKE_TIMEOUT_MS, maxBytes: 1 << 20 });
  return await reader.take<Greeting>((bytes) => {
    const refuse = (refused: string) => ({ value: { refused, first: Buffer.from(bytes) }, size: 0 });
    // A web request has no 56 hex digits: with a web server behind it, it is passed on as soon as that shows.
    if (mayFallBack && !/^[0-9a-f]*$/.test(bytes.toString("latin1", 0, KEY_BYTES)))
      return refuse("no Trojan key");
    if (bytes.length < KEY_BYTES) return null;
    const user = names.get(bytes.toString("latin1", 0, KEY_BYTES));
    if (user === undefined) return refuse("an unknown password");
    const decoded = decodeRequest(bytes);
    return decoded === null ? null : { value: { user, request: decoded.value }, size: decoded.size };
  });
}

async function readFirstAddress(stream: Duplex): Promise<Destination> {
  using reader = new ByteReader(stream, { timeoutMs: HANDSHAKE_TIMEOUT_MS, maxBytes: 1 << 20 });
  return await reader.take((bytes) => {
    const found = decodeSocksAddress(bytes);
    return found === null ? null : { value: found.destination, size: 0 };
  });
}
