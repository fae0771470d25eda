/** One flow of datagrams in a TUIC connection, of either side: packets, in parts where they are too long. */
import type { Datagram, Destination } from "#core/session.ts";
import { FragmentJoiner } from "#protocols/shared/fragment-joiner.ts";
import type { FragmentRoom } from "#protocols/shared/fragment-room.ts";
import { encodePacket, MOST_NAME_BYTES, type Packet, packetHeadBytes } from "./wire.ts";

const MOST_PAYLOAD_BYTES = 65_535;
const MOST_FRAGMENTS = 255;

/** The way that packets take. */
export interface PacketWay {
  /** The longest packet at the moment, its head included. */
  readonly mostBytes: number;
  /** Keeps the bytes. It may drop them. */
  send(packet: Uint8Array): void;
}

export class PacketChannel {
  readonly #association: number;
  readonly #joiner: FragmentJoiner;
  #packet = 0;
  /** Of the packet whose first fragment came last. */
  #address: { readonly packet: number; readonly destination: Destination } | null = null;

  /** `room`: of all associations of a client; absent: it is the only one that counts. */
  constructor(association: number, room?: FragmentRoom) {
    this.#association = association;
    this.#joiner = new FragmentJoiner(MOST_PAYLOAD_BYTES, room);
  }

  /** What no packet can carry is dropped. */
  send({ payload, destination }: Datagram, way: PacketWay): void {
    const isSendable = Buffer.byteLength(destination.host ?? "") <= MOST_NAME_BYTES;
    if (!isSendable || payload.length > MOST_PAYLOAD_BYTES) return;
    const room = way.mostBytes - packetHeadBytes(destination);
    const fragments = Math.max(1, Math.ceil(payload.length / room));
    if (room <= 0 || fragments > MOST_FRAGMENTS) return;
    this.#packet = (this.#packet + 1) & 0xffff;
    const common = { association: this.#association, packet: this.#packet, fragments };
    for (let fragment = 0; fragment < fragments; fragment++) {
      const data = payload.subarray(fragment * room, (fragment + 1) * room);
      way.send(encodePacket({ ...common, fragment, data, address: fragment === 0 ? destination : null }));
    }
  }

  /** The datagram that is whole now; null: none is. Its payload may be a view of the packet. */
  take({ packet, fragment, fragments, address, data }: Packet): Datagram | null {
    if (address !== null) this.#address = { packet, destination: address };
    const payload = fragments === 1 ? data : this.#joiner.add(packet, fragment, fragments, data);
    return payload === null || this.#address?.packet !== packet
      ? null
      : { payload, destination: this.#address.destination };
  }
}
