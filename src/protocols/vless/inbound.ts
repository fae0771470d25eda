import type { Duplex } from "node:stream";
import { AuthError, ConfigError, messageOf, ProtocolError } from "#core/errors.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { DatagramFlow, Destination, Network } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { abortStream } from "#core/stream.ts";
import { type Arrival, arrivalOf, describe, guardErrors, streamSession } from "#net/accept.ts";
import { ByteReader } from "#net/byte-reader.ts";
import { CodecStream } from "#net/codec-stream.ts";
import { LiveUsers } from "#protocols/live-users.ts";
import { acceptMux, isMux } from "#protocols/mux/inbound.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import type { Secured } from "#transport/security.ts";
import { openTransportServer, type TransportServer } from "#transport/server.ts";
import { ServerCodec } from "./codec.ts";
import { chooseFallback, serveFallback } from "./fallback.ts";
import { MuxServer } from "./mux-server.ts";
import type { InboundOptions } from "./options.ts";
import { PACKET_ADDR_HOST, packetAddrFraming, peekPacketAddr, plainFraming } from "./packets.ts";
import {
  decodeRequest,
  ANSWER,
  COMMAND_MUX,
  COMMAND_TCP,
  ID_BYTES,
  VERSION,
  VISION,
  type VlessRequest,
} from "./wire.ts";
import { type UserTable, userTable, type VlessUser } from "./users.ts";
import { VisionStream } from "./vision-stream.ts";

const HANDSHAKE_TIMEOUT_MS = 60_000;
/** What a server must have seen before it decides: version, id, length of addons. */
const DECIDED_BYTES = ID_BYTES + 2;
const API_TYPE = "Vless";

/** Throws `ConfigError`: no users in order, nothing that hides the traffic and no `allow-insecure`, bad TLS keys. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const users = options.users.map(({ username, uuid, flow }, index) => ({
    id: username ?? `${index}`,
    credential: uuid,
    flow,
  }));
  const server = new VlessServer(options, env, userTable(users, `listener ${env.name}`));
  const transport = await openTransportServer(options, {
    name: env.name,
    bypassable: () => server.usesVision,
    files: env.files,
    log: env.log,
  });
  try {
    if (transport.security === "none" && !options["allow-insecure"])
      throw new ConfigError(
        `listener ${env.name}: vless hides nothing by itself: set certificate and private-key, or allow-insecure: true`,
      );
    return await server.listen(transport);
  } catch (error) {
    transport[Symbol.dispose]();
    throw error;
  }
}

type Greeting =
  | { readonly user: VlessUser; readonly request: VlessRequest }
  | { readonly refused: string; readonly first: Buffer };

class VlessServer {
  readonly #options: InboundOptions;
  readonly #env: InboundEnv;
  readonly #live = new LiveUsers();
  #users: UserTable;

  constructor(options: InboundOptions, env: InboundEnv, users: UserTable) {
    this.#options = options;
    this.#env = env;
    this.#users = users;
  }

  get usesVision(): boolean {
    return this.#users.usesVision;
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
    const next = userTable(users, `listener ${this.#env.name}`); // throws: nothing has changed
    const before = new Map(this.#users.all.map((user) => [user.name, user]));
    const after = new Map(next.all.map((user) => [user.name, user]));
    this.#users = next;
    this.#live.retain((name) => isSame(before.get(name), after.get(name)));
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

  async #greet(carried: Secured, arrival: Arrival): Promise<void> {
    const greeting = await readGreeting(carried.stream, this.#users, this.#options.fallbacks.length > 0);
    if ("user" in greeting) return await this.#accept(carried, arrival, greeting.user, greeting.request);
    const { stream, serverName, alpn } = carried;
    const fallback = chooseFallback(this.#options.fallbacks, { serverName, alpn, first: greeting.first });
    if (fallback === null) throw new ProtocolError(greeting.refused);
    await serveFallback(stream, fallback, arrival, this.#env.dialer);
  }

  async #accept(carried: Secured, arrival: Arrival, user: VlessUser, request: VlessRequest): Promise<void> {
    const { command, destination } = request;
    checkFlow(user, request, carried);
    if (!isSame(user, this.#users.find(user.id) ?? undefined))
      throw new AuthError("taken away while it shook hands");
    const stream = this.#open(carried, user, request);
    guardErrors(stream);
    const tracked = this.#live.add(user.name, () => {
      abortStream(carried.stream); // a fault, not an end: what was cut off must not look complete
      stream.destroy();
    });
    stream.once("close", () => tracked[Symbol.dispose]());
    const about = (network: Network, to: Destination) =>
      describe(this.#env, arrival, { network, type: API_TYPE, user: user.name, destination: to });
    const onFlow = (flow: DatagramFlow, to: Destination) =>
      this.#env.accept({ network: "udp", metadata: about("udp", to), flow });
    const answered = (sub: Duplex, to: Destination, tell: (failure: Error | null) => void) =>
      this.#env.accept(streamSession(about("tcp", to), sub, tell));
    const onStream = (sub: Duplex, to: Destination) => {
      guardErrors(sub);
      // The protocol has no answer to a dial: success is the first byte, failure the end.
      answered(sub, to, (failure) => void (failure !== null && sub.destroy()));
    };
    if (command === COMMAND_MUX || destination === null)
      new MuxServer(stream, { datagramsOnly: user.flow === VISION, onFlow, onStream, log: this.#env.log });
    else if (command === COMMAND_TCP && isMux(destination))
      acceptMux(stream, {
        options: this.#options["mux-option"],
        onStream: answered,
        onFlow,
        log: this.#env.log,
      });
    else if (command === COMMAND_TCP) onStream(stream, destination);
    else await serveDatagrams(stream, destination, onFlow);
  }

  #open(carried: Secured, user: VlessUser, { flow }: VlessRequest): Duplex {
    const { bypass } = carried;
    if (flow !== VISION || bypass === null) return new CodecStream(carried.stream, new ServerCodec());
    return new VisionStream({
      secured: { ...carried, bypass },
      id: user.id,
      opening: ANSWER,
      answer: null,
      openAfterMs: null,
    });
  }
}

/** Does a conversation of the one belong to the other? */
function isSame(before: VlessUser | undefined, after: VlessUser | undefined): boolean {
  if (before === undefined || after === undefined) return false;
  return before.name === after.name && before.flow === after.flow && before.id.equals(after.id);
}

/** Reads nothing beyond the request; what is refused stays in the stream, for the fallback. */
async function readGreeting(stream: Duplex, users: UserTable, mayFallBack: boolean): Promise<Greeting> {
  using reader = new ByteReader(stream, { timeoutMs: HANDSHAKE_TIMEOUT_MS, maxBytes: 1 << 20 });
  return await reader.take<Greeting>((bytes) => {
    const refuse = (refused: string) => ({ value: { refused, first: Buffer.from(bytes) }, size: 0 });
    // With a web server behind it, what cannot become a request is passed on at once; without one nobody may see when
    // it was decided, so it takes as long as a wrong id does.
    if (mayFallBack && bytes[0] !== VERSION) return refuse("not VLESS version 0");
    if (bytes.length < DECIDED_BYTES) return null;
    if (bytes[0] !== VERSION) return refuse("not VLESS version 0");
    const user = users.find(bytes.subarray(1, 1 + ID_BYTES));
    if (user === null) return refuse("an unknown user");
    const decoded = decodeRequest(bytes);
    return decoded === null ? null : { value: { user, request: decoded.value }, size: decoded.size };
  });
}

/** Throws `ProtocolError` where the request's flow is not the user's. */
function checkFlow(user: VlessUser, { flow, command }: VlessRequest, { bypass }: Secured): void {
  if (flow !== "" && flow !== VISION) throw new ProtocolError("an unknown flow");
  if (flow === VISION && user.flow !== VISION)
    throw new ProtocolError(`user ${user.name} has no flow, the request has one`);
  if (flow === VISION && bypass === null) throw new ProtocolError("a flow needs TLS 1.3 directly over TCP");
  if (flow === "" && user.flow === VISION && command === COMMAND_TCP)
    throw new ProtocolError(`user ${user.name} has a flow, the request has none`);
}

async function serveDatagrams(
  stream: Duplex,
  destination: Destination,
  onFlow: (flow: DatagramFlow, destination: Destination) => void,
): Promise<void> {
  if (destination.host !== PACKET_ADDR_HOST)
    return onFlow(new StreamFlow(stream, plainFraming(destination, "server")), destination);
  let first: Destination;
  {
    using reader = new ByteReader(stream, { timeoutMs: HANDSHAKE_TIMEOUT_MS, maxBytes: 1 << 20 });
    first = await reader.take((bytes) => {
      const value = peekPacketAddr(bytes);
      return value === null ? null : { value, size: 0 };
    });
  }
  onFlow(new StreamFlow(stream, packetAddrFraming), first);
}
