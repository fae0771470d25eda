/** One flow of datagrams in a hysteria2 connection: frames in both directions, in parts where they are too long. */
import { type Datagram, destinationText } from "#core/session.ts";
import { FragmentJoiner } from "#protocols/shared/fragment-joiner.ts";
import { encodeUdp, parseAddress, udpHeadBytes, type UdpMessage } from "./wire.ts";

/** A datagram has at most so many bytes; peers refuse longer ones. */
const MOST_PAYLOAD_BYTES = 4096;
const MOST_FRAGMENTS = 255;

/** The way that frames take. */
export interface FrameWay {
  /** The longest frame at the moment. */
  readonly mostBytes: number;
  /** Keeps the payload. */
  send(payload: Uint8Array): void;
}

export class UdpChannel {
  readonly #id: number;
  readonly #way: FrameWay;
  #packet = 0;
  readonly #joiner = new FragmentJoiner(MOST_PAYLOAD_BYTES);

  constructor(id: number, way: FrameWay) {
    this.#id = id;
    this.#way = way;
  }

  send({ payload, destination }: Datagram): void {
    if (payload.length > MOST_PAYLOAD_BYTES) return;
    const address = destinationText(destination);
    const room = this.#way.mostBytes - udpHeadBytes(address);
    const fragments = Math.max(1, Math.ceil(payload.length / room));
    if (room <= 0 || fragments > MOST_FRAGMENTS) return;
    this.#packet = (this.#packet % 0xffff) + 1;
    const common = { session: this.#id, packet: this.#packet, fragments, address };
    for (let fragment = 0; fragment < fragments; fragment++) {
      const data = payload.subarray(fragment * room, (fragment + 1) * room);
      this.#way.send(encodeUdp({ ...common, fragment, data }));
    }
  }

  /** The datagram that is whole now; null: none is. Its payload may be a view of the message. */
  take({ packet, fragment, fragments, address, data }: UdpMessage): Datagram | null {
    const payload = fragments === 1 ? data : this.#joiner.add(packet, fragment, fragments, data);
    const destination = payload === null ? null : parseAddress(address);
    return payload === null || destination === null ? null : { payload, destination };
  }
}
