import type { Duplex } from "node:stream";
import { continueWith } from "#lib/continue-with.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { readFirst } from "#net/listen/first-bytes.ts";
import { clientStream } from "#net/stream/departing-stream.ts";
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
    readsFirst: true,
    authenticate(client, ends) {
      const table = shell.users;
      const read = readFirst(client, serverHandshake(table, guard), SILENCE_MS);
      return continueWith(read, ({ user, request }) => {
        const connection = shell.admit(user.name, table, ends);
        const find = () => ({ codec: new VmessCodec(request, null), payload: Buffer.alloc(0) });
        const opened = clientStream(find(), find, SILENCE_MS);
        const { command, destination } = request;
        if (command === COMMAND_TCP && destination !== null && !isMux(destination))
          return connection.serve(client, opened, destination);
        if (command === COMMAND_TCP && destination !== null)
          return connection.serveMuxClient(client, opened, options["mux-option"]);
        serve(connection.openStream(client, opened), request, connection);
      });
    },
  });
}

/** Mux.cool, and datagrams. */
function serve(stream: Duplex, { destination }: RequestHeader, connection: AuthenticatedConnection): void {
  const { onFlow } = connection;
  if (destination === null) connection.serveMuxCool(stream);
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
