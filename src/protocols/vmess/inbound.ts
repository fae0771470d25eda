import type { Duplex } from "node:stream";
import { messageOf, ProtocolError } from "#core/errors.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { DatagramFlow, Destination, Network } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { type Arrival, arrivalOf, describe, guardErrors, streamSession } from "#net/accept.ts";
import { CodecStream } from "#net/codec-stream.ts";
import { discardInput, readHandshake } from "#net/read-handshake.ts";
import { LiveUsers } from "#protocols/live-users.ts";
import { acceptMux, isMux } from "#protocols/mux/inbound.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import { MuxServer } from "#protocols/vless/mux-server.ts";
import { decodePacketAddr, PACKET_ADDR_HOST } from "#protocols/vless/packets.ts";
import { openTransportServer, type TransportServer } from "#transport/server.ts";
import { VmessCodec } from "./codec.ts";
import { COMMAND_TCP, type RequestHeader } from "./header.ts";
import type { InboundOptions } from "./options.ts";
import { packetAddr, plainFraming } from "./packets.ts";
import { RequestGuard, serverHandshake } from "./server-handshake.ts";
import { type VmessUser, vmessUsers } from "./users.ts";

const API_TYPE = "Vmess";
/** How long a peer that does not fit is read on in silence. */
const SILENCE_MS = 60_000;

/** Throws `ConfigError`. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const { name, files, log } = env;
  const users = options.users.map(({ username, uuid }, index) => ({
    id: username ?? `${index}`,
    credential: uuid,
    flow: null,
  }));
  const server = new Server(options, env, vmessUsers(users, `listener ${name}`));
  const transport = await openTransportServer(options, { name, files, log });
  try {
    const endpoints = await env.listenTcp((socket) => server.serve(socket, transport));
    return {
      name,
      type: API_TYPE,
      endpoints,
      replaceUsers: (next) => server.replaceUsers(next),
      [Symbol.asyncDispose]: async () => transport[Symbol.dispose](),
    };
  } catch (error) {
    transport[Symbol.dispose]();
    throw error;
  }
}

class Server {
  readonly #muxOptions: InboundOptions["mux-option"];
  readonly #env: InboundEnv;
  readonly #guard = new RequestGuard();
  readonly #live = new LiveUsers();
  #users: readonly VmessUser[];

  constructor(options: InboundOptions, env: InboundEnv, users: readonly VmessUser[]) {
    this.#muxOptions = options["mux-option"];
    this.#env = env;
    this.#users = users;
  }

  replaceUsers(users: readonly User[]): void {
    const next = vmessUsers(users, `listener ${this.#env.name}`); // throws: nothing has changed
    const before = new Map(this.#users.map((user) => [user.name, user.id]));
    const after = new Map(next.map((user) => [user.name, user.id]));
    this.#users = next;
    this.#live.retain((name) => before.get(name)?.equals(after.get(name) ?? Buffer.alloc(0)) === true);
  }

  serve(socket: StreamSocket, transport: TransportServer): void {
    guardErrors(socket);
    const arrival = arrivalOf(socket);
    if (arrival === null) return;
    transport.serve(socket, ({ stream }) => void this.#greet(stream, arrival));
  }

  async #greet(wire: Duplex, arrival: Arrival): Promise<void> {
    guardErrors(wire);
    try {
      const step = serverHandshake(this.#users, this.#guard);
      const { user, request } = await readHandshake(wire, step, SILENCE_MS);
      this.#accept(wire, arrival, user, request);
    } catch (error) {
      this.#env.log.debug(() => `listener ${this.#env.name}: ${arrival.source.ip}: ${messageOf(error)}`);
      if (error instanceof ProtocolError) discardInput(wire, SILENCE_MS);
      else wire.destroy();
    }
  }

  #accept(wire: Duplex, arrival: Arrival, user: VmessUser, request: RequestHeader): void {
    const stream = new CodecStream(wire, new VmessCodec(request, null), { discardOnFaultMs: SILENCE_MS });
    guardErrors(stream);
    const tracked = this.#live.add(user.name, () => stream.destroy());
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
    const { command, destination } = request;
    if (destination === null)
      new MuxServer(stream, { datagramsOnly: false, onFlow, onStream, log: this.#env.log });
    else if (command === COMMAND_TCP && isMux(destination))
      acceptMux(stream, { options: this.#muxOptions, onStream: answered, onFlow, log: this.#env.log });
    else if (command === COMMAND_TCP) onStream(stream, destination);
    else if (destination.host === PACKET_ADDR_HOST) acceptPacketAddr(stream, onFlow);
    else onFlow(new StreamFlow(stream, plainFraming(destination, "server")), destination);
  }
}

/** The first packet tells where to; it stays in front of the others. */
function acceptPacketAddr(stream: Duplex, onFlow: (flow: DatagramFlow, to: Destination) => void): void {
  stream.once("data", (packet: Buffer) => {
    stream.pause();
    try {
      const { destination } = decodePacketAddr(packet);
      stream.unshift(packet);
      onFlow(new StreamFlow(stream, packetAddr), destination);
    } catch (error) {
      stream.destroy(error as Error);
    }
  });
}
