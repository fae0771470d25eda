/** The datagrams of a listener: a session per client socket, or per association of the 2022 edition. */
import type { InboundEnv } from "#core/inbound.ts";
import type { Datagram, Endpoint } from "#core/session.ts";
import type { DatagramListener } from "#core/sockets.ts";
import { type ClientFlow, clientFlow } from "#net/udp/udp-clients.ts";
import type { UserInbound } from "#protocols/managed/user-inbound.ts";
import type { CipherMemory } from "./memory.ts";
import { openRequest, type PeerSession } from "./server-packets.ts";
import type { ServerUsers } from "./server-keys.ts";

interface Entry {
  readonly session: PeerSession;
  readonly flow: ClientFlow;
  /** Where the last good packet came from. */
  source: Endpoint;
}

/** Serves the socket until it closes. Sessions that are idle, or too many, are disposed of by what `accept` handed them to. */
export function serveDatagrams(
  socket: DatagramListener,
  shell: UserInbound<ServerUsers>,
  env: Pick<InboundEnv, "name" | "log" | "nowMs">,
  memory: CipherMemory,
): void {
  const entries = new Map<string, Entry>();
  const find = (key: string) => entries.get(key)?.session;

  function onPacket(packet: Buffer, source: Endpoint): void {
    const opened = openRequest(shell.users, packet, source, find, env.nowMs, memory);
    if (opened === null) return; // no user's packet, or a replay: no answer
    const { session, item } = opened;
    const known = entries.get(session.key);
    if (known !== undefined) {
      known.source = source;
      known.flow.arrived(item);
    } else start(session, source, item);
  }

  function start(session: PeerSession, source: Endpoint, first: Datagram): void {
    const forget = () => {
      entries.delete(session.key);
      held[Symbol.dispose]();
      remembered?.[Symbol.dispose]();
    };
    const flow = clientFlow((item) => reply(entry, item), forget);
    const entry: Entry = { session, flow, source };
    const connection = shell.admit(session.user, shell.users, { source, local: socket.local });
    const remembered = session.remember?.();
    const held = connection.hold(() => flow.close());
    entries.set(session.key, entry);
    flow.arrived(first);
    connection.onFlow(flow.flow, first.destination);
  }

  function reply({ session, source }: Entry, item: Datagram): void {
    try {
      socket.send(session.seal(item), source);
    } catch (error) {
      env.log.debug(() => `listener ${env.name}: a reply was dropped: ${String(error)}`); // it cannot be sealed
    }
  }

  socket.receive(onPacket);
  void socket.closed.then(() => {
    for (const { flow } of entries.values()) flow.close();
  });
}
