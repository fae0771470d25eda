/** UDP ASSOCIATE, accepting side: a fresh UDP socket for each association, on the address that the client reached. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { messageOf } from "#core/errors.ts";
import type { InboundEnv } from "#core/inbound.ts";
import { describe, type ConnectionEnds } from "#net/listen/accept.ts";
import { BUFFERS, type DatagramSocket, type DatagramSockets } from "#net/udp/datagram-socket.ts";
import { familyOf } from "#net/address/ip.ts";
import { UdpClients } from "#net/udp/udp-clients.ts";
import { Refusal } from "#protocols/mixed/listen.ts";
import { DatagramHeaders } from "./datagram-headers.ts";
import * as replies from "./replies.ts";
import * as wire from "./wire.ts";

/** Source ports of one client's association; a datagram from one more is dropped. */
const MAX_SOURCES = 256;

/**
 * Answers the request and holds the association until the TCP connection ends; what the client sends on that is
 * ignored. Only the client's own address may send. Throws `Refusal` where no socket can be had.
 */
export async function openAssociation(
  stream: Duplex,
  ends: ConnectionEnds,
  user: string | null,
  { env, datagrams }: { readonly env: InboundEnv; readonly datagrams: DatagramSockets },
): Promise<void> {
  const { ip } = ends.local;
  const socket = createSocket({ type: familyOf(ip) === 6 ? "udp6" : "udp4", lookup: literally, ...BUFFERS });
  try {
    const listening = once(socket, "listening"); // comes within `bind`, as no name is looked up
    socket.bind({ address: ip, port: 0, exclusive: true });
    await listening;
  } catch (error) {
    socket.close();
    throw new Refusal(wire.encodeReply(replies.GENERAL_FAILURE), `UDP ASSOCIATE: ${messageOf(error)}`);
  }
  socket.on("error", () => {
    // An ICMP error for one datagram; the association continues.
  });
  const headers = new DatagramHeaders("ip");
  const clients = new UdpClients(
    MAX_SOURCES,
    (source, flow, first) => {
      const asked = { network: "udp", type: "Socks5", user, destination: first.destination } as const;
      env.accept({ network: "udp", metadata: describe(env, { ...ends, source }, asked), flow });
    },
    (item, source) => {
      udpSocket.send(headers.encode(item.destination), item.payload, source.ip, source.port);
    },
  );
  const udpSocket: DatagramSocket = datagrams.take(socket, (bytes, from) => {
    if (from.ip !== ends.source.ip) return;
    const item = headers.decode(bytes);
    if (item !== null) clients.deliver(from, item);
  });
  udpSocket.begin();
  holdUntilClosed(stream, () => {
    udpSocket.close();
    clients.close();
  });
  const bound = { host: null, ip, port: udpSocket.port };
  stream.write(wire.encodeReply(0, bound));
}

function holdUntilClosed(stream: Duplex, onEnd: () => void): void {
  if (stream.destroyed) return onEnd();
  stream.on("end", () => stream.destroy());
  stream.on("close", onEnd);
  stream.resume();
}

type Looked = (error: Error | null, address: string, family: number) => void;

/** Every address here is a literal; the resolver of the system is never asked. */
function literally(address: string, _options: unknown, on: Looked): void {
  on(null, address, address.includes(":") ? 6 : 4);
}
