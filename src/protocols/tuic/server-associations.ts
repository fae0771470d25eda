import type { Datagram, DatagramFlow, Destination } from "#core/session.ts";
import { AcceptedFlows } from "#protocols/shared/accepted-flows.ts";
import type { FlowChannel } from "#protocols/shared/flow-channel.ts";
import { FragmentRoom } from "#protocols/shared/fragment-room.ts";
import { PacketChannel, type PacketWay } from "./packet-channel.ts";
import type { Packet } from "./wire.ts";

/** A packet of the client's, and the way that it came, by which answers go back. */
export interface ArrivedPacket {
  readonly packet: Packet;
  readonly way: PacketWay;
}

export type ServerAssociations = AcceptedFlows<ArrivedPacket>;

/**
 * Flows of datagrams of a client through its TUIC connection: one for each association that it uses. `onFlow` takes a new
 * flow over, and disposes of it when it is idle.
 */
export function newServerAssociations(
  onFlow: (flow: DatagramFlow, first: Destination) => void,
): ServerAssociations {
  const room = new FragmentRoom();
  return new AcceptedFlows({ openChannel: (id, first) => answeringChannel(id, first, room), onFlow });
}

/** Answers go the way that the client took last. */
function answeringChannel(
  association: number,
  first: ArrivedPacket,
  room: FragmentRoom,
): FlowChannel<ArrivedPacket> {
  const channel = new PacketChannel(association, room);
  let lastWay = first.way;
  return {
    send: (answer) => channel.send(sourceOf(answer), lastWay),
    take({ packet, way }) {
      lastWay = way;
      return channel.take(packet);
    },
  };
}

/** Clients compare the source of an answer with addresses. */
function sourceOf({ payload, destination }: Datagram): Datagram {
  const { ip, port } = destination;
  return { payload, destination: ip === null ? destination : { host: null, ip, port } };
}
