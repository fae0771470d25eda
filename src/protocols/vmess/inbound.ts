import type { Duplex } from "node:stream";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { openStream } from "#net/stream/departing-stream.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import { UserInbound } from "#protocols/managed/user-inbound.ts";
import { isMux } from "#protocols/mux/inbound.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import { decodePacketAddr, PACKET_ADDR_HOST } from "#protocols/shared/datagram-framing.ts";
import { plainUserId } from "#protocols/shared/user-id.ts";
import { openTransportServer } from "#transport/server.ts";
import { VmessCodec } from "./codec.ts";
import { COMMAND_TCP, type RequestHeader } from "./header.ts";
import type { InboundOptions } from "./options.ts";
import { packetAddr, plainFraming } from "./packets.ts";
import { RequestGuard, RequestMemory, serverHandshake } from "./server-handshake.ts";
import { vmessUsers } from "./users.ts";
import { asError } from "#core/errors.ts";

/** How long a peer that does not fit is read on in silence. */
const SILENCE_MS = 60_000;

/** Throws `ConfigError`. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const { name } = env;
  const tableOf = (users: readonly User[]) => vmessUsers(users, `listener ${name}`);
  const users = options.users.map(({ username, uuid }, index) => ({
    id: username ?? `${index}`,
    credential: plainUserId(uuid),
    flow: null,
  }));
  const shell = new UserInbound(env, { type: "Vmess", users: tableOf(users), written: users, tableOf });
  const guard = new RequestGuard(env.nowMs, env.memory?.of(RequestMemory) ?? new RequestMemory());
  return await shell.listen(await openTransportServer(options, env), {
    mayBeBare: true,
    silenceMs: SILENCE_MS,
    async authenticate({ stream: wire }, ends) {
      const table = shell.users;
      const { user, request } = await readHandshake(wire, serverHandshake(table.all, guard), SILENCE_MS);
      const connection = shell.admit(user.name, table, ends);
      const stream = openStream(wire, new VmessCodec(request, null), { discardOnFaultMs: SILENCE_MS });
      connection.holdStream(stream, wire);
      serve(stream, request, connection, options["mux-option"]);
    },
  });
}

function serve(
  stream: Duplex,
  { command, destination }: RequestHeader,
  connection: AuthenticatedConnection,
  mux: InboundOptions["mux-option"],
): void {
  const { onFlow, onSilentStream: onStream } = connection;
  if (destination === null) connection.serveMuxCool(stream);
  else if (command === COMMAND_TCP && isMux(destination))
    connection.serveMux(stream, mux, connection.onStream);
  else if (command === COMMAND_TCP) onStream(stream, destination);
  else if (destination.host === PACKET_ADDR_HOST) acceptPacketAddr(stream, onFlow);
  else onFlow(new StreamFlow(stream, plainFraming(destination, "server")), destination);
}

/** The first packet names the destination and stays first in the stream. A stream without one is closed after a while. */
function acceptPacketAddr(stream: Duplex, onFlow: (flow: DatagramFlow, to: Destination) => void): void {
  const timer = setTimeout(() => stream.destroy(), SILENCE_MS);
  stream.once("close", () => clearTimeout(timer));
  stream.once("end", () => stream.destroy());
  stream.once("data", (packet: Buffer) => {
    clearTimeout(timer);
    stream.pause();
    try {
      const { destination } = decodePacketAddr(packet);
      stream.unshift(packet);
      onFlow(new StreamFlow(stream, packetAddr), destination);
    } catch (error) {
      stream.destroy(asError(error));
    }
  });
}
