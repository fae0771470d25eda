import { messageOf } from "#core/errors.ts";
import type { InboundEnv } from "#core/inbound.ts";
import { endpointText, type Datagram, type Destination, type Endpoint } from "#core/session.ts";
import type { CapturedDatagram, TransparentSocket } from "#core/sockets.ts";
import { describe } from "#net/listen/accept.ts";
import { loopsBack } from "#net/address/own-address.ts";
import { UdpClients } from "#net/udp/udp-clients.ts";
import { ReplySockets } from "./reply-sockets.ts";

/** Clients of one listener; a datagram of one more is dropped. */
const MAX_SOURCES = 4096;

/** One session per client socket, whatever it writes to; replies carry the address that the client wrote to. */
export function serveCaptured(socket: TransparentSocket, env: InboundEnv): void {
  const replies = new ReplySockets(
    (from) => socket.replyAs(from, env.routingMark),
    (from, error) => env.log.error(`${env.name}: cannot reply as ${endpointText(from)}: ${messageOf(error)}`),
  );
  const clients = new UdpClients<CapturedDatagram>(
    MAX_SOURCES,
    (source, flow, { destination, dscp }) => {
      const asked = { network: "udp", type: "TProxy", user: null, destination } as const;
      const metadata = { ...describe(env, { source, local: socket.local }, asked), dscp };
      void flow.closed.then(() => replies.release(source));
      env.accept({ network: "udp", metadata, flow });
    },
    (item, source) => reply(replies, item, source),
  );
  socket.receive((item) => {
    if (!loopsBack(item.destination, socket.local)) clients.deliver(item.source, item);
  });
  void socket.closed.then(() => clients.close());
}

function reply(replies: ReplySockets, { payload, destination }: Datagram, source: Endpoint): void {
  // A name cannot be a sender; sessions that began with an address never see one.
  if (hasAddress(destination)) replies.get(destination, source)?.send(payload, source);
}

function hasAddress(destination: Destination): destination is Destination & Endpoint {
  return destination.ip !== null;
}
