/** The datagrams of a listener: a session per client socket, or per association of the 2022 edition. */
import type { InboundEnv } from "#core/inbound.ts";
import type { Datagram, Endpoint } from "#core/session.ts";
import type { DatagramSocket } from "#core/sockets.ts";
import { socketIp } from "#net/ip.ts";
import { type ClientFlow, clientFlow } from "#net/udp-clients.ts";
import type { ManagedShell } from "#protocols/managed/shell.ts";
import { openRequest, type PeerSession } from "./server-packets.ts";
import type { ServerUsers } from "./server-keys.ts";

/** Sessions of one listening socket. At the bound a new one replaces the one that was silent longest. */
const MAX_SESSIONS = 4096;
/** Bytes that the kernel would not take yet; beyond, replies are dropped. */
const MAX_QUEUED_BYTES = 1 << 20;

interface Entry {
  readonly session: PeerSession;
  readonly flow: ClientFlow;
  /** Where the last good packet came from. */
  source: Endpoint;
}

/** Serves the socket until it closes. Idle sessions are disposed of by whoever took them. */
export function serveDatagrams(
  socket: DatagramSocket,
  shell: ManagedShell<ServerUsers>,
  env: Pick<InboundEnv, "name" | "log" | "nowMs">,
): void {
  const entries = new Map<string, Entry>();
  const find = (key: string) => entries.get(key)?.session;

  function onMessage(packet: Buffer, from: { address: string; port: number }): void {
    const source = { ip: socketIp(from.address), port: from.port };
    const opened = openRequest(shell.users, packet, source, find, env.nowMs);
    if (opened === null) return; // nobody of ours, or a replay: silence
    const { session, item } = opened;
    const known = entries.get(session.key);
    if (known !== undefined) {
      known.source = source;
      entries.delete(session.key); // and back, so that the map stays in order of use
      entries.set(session.key, known);
      known.flow.arrived(item);
    } else start(session, source, item);
  }

  function start(session: PeerSession, source: Endpoint, first: Datagram): void {
    if (entries.size >= MAX_SESSIONS) (entries.values().next().value as Entry).flow.close();
    const forget = () => {
      entries.delete(session.key);
      held[Symbol.dispose]();
    };
    const flow = clientFlow((item) => reply(entry, item), forget);
    const entry: Entry = { session, flow, source };
    const { address, port } = socket.address();
    const arrival = { source, local: { ip: socketIp(address), port } };
    const entrance = shell.admit(session.user, shell.users, arrival);
    const held = entrance.hold(() => flow.close());
    entries.set(session.key, entry);
    flow.arrived(first);
    entrance.onFlow(flow.flow, first.destination);
  }

  function reply({ session, source }: Entry, item: Datagram): void {
    try {
      if (socket.getSendQueueSize() > MAX_QUEUED_BYTES) return;
      socket.send(session.seal(item), source.port, source.ip);
    } catch (error) {
      env.log.debug(() => `listener ${env.name}: a reply was dropped: ${String(error)}`); // the socket has closed
    }
  }

  socket.on("message", onMessage);
  socket.once("close", () => {
    for (const { flow } of entries.values()) flow.close();
  });
}
