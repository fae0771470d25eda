import { OpenedFlows } from "#protocols/shared/opened-flows.ts";
import { PacketChannel, type PacketWay } from "./packet-channel.ts";
import { decodePacket, MOST_ASSOCIATIONS, type Packet } from "./wire.ts";

export interface AssociationsWay extends PacketWay {
  /** The server is told that the association is over. */
  dissociate(association: number): void;
  /** One has ended. */
  ended(): void;
}

/** The client's flows of datagrams in one TUIC connection: an association for each. */
export function newAssociations(way: AssociationsWay): OpenedFlows<Packet> {
  return new OpenedFlows({
    protocol: "tuic",
    firstId: 0,
    idCount: MOST_ASSOCIATIONS,
    decode: decodePacket,
    idOf: ({ association }) => association,
    openChannel(id) {
      const channel = new PacketChannel(id);
      return {
        send: (item) => channel.send(item, way),
        take: (packet) => channel.take(packet),
        dissociate: () => way.dissociate(id),
      };
    },
    ended: () => way.ended(),
  });
}
