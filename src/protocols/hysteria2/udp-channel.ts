/** One flow of datagrams in a hysteria2 connection: frames in both directions, in parts where they are too long. */
import { type Datagram, type Destination, destinationText } from "#core/session.ts";
import { FragmentJoiner } from "#protocols/shared/fragment-joiner.ts";
import { decodeAddress, encodeUdpHead, numberUdpHead, type UdpMessage } from "./wire.ts";

/** A datagram has at most so many bytes; peers refuse longer ones. */
const MOST_PAYLOAD_BYTES = 4096;
const MOST_FRAGMENTS = 255;
const NOTHING = new Uint8Array(0);

/** The way that frames take. */
export interface FrameWay {
  /** The longest frame at the moment. */
  readonly mostBytes: number;
  /** A frame in two parts, which are lent until the call returns. It may drop them. */
  send(head: Uint8Array, data: Uint8Array): void;
}

export class UdpChannel {
  readonly #id: number;
  readonly #way: FrameWay;
  readonly #joiner = new FragmentJoiner(MOST_PAYLOAD_BYTES);
  readonly #part = { packet: 0, fragment: 0, fragments: 1 };
  // Most datagrams go where the one before went, and come from where that came from.
  #to: Destination | null = null;
  #head: Uint8Array = NOTHING;
  #address: Uint8Array = NOTHING;
  #from: Destination | null = null;

  constructor(id: number, way: FrameWay) {
    this.#id = id;
    this.#way = way;
  }

  send({ payload, destination }: Datagram): void {
    if (payload.length > MOST_PAYLOAD_BYTES) return;
    const head = this.#headTo(destination);
    const part = this.#part;
    const room = this.#way.mostBytes - head.length;
    const fragments = Math.max(1, Math.ceil(payload.length / room));
    if (room <= 0 || fragments > MOST_FRAGMENTS) return;
    part.packet = (part.packet % 0xffff) + 1;
    part.fragments = fragments;
    for (part.fragment = 0; part.fragment < fragments; part.fragment++) {
      numberUdpHead(head, part);
      const from = part.fragment * room;
      this.#way.send(head, fragments === 1 ? payload : payload.subarray(from, from + room));
    }
  }

  #headTo(destination: Destination): Uint8Array {
    const { host, ip, port } = destination;
    const to = this.#to;
    if (to !== null && to.port === port && to.ip === ip && to.host === host) return this.#head;
    this.#to = destination;
    return (this.#head = encodeUdpHead(this.#id, destinationText(destination)));
  }

  /** The datagram that is whole now; null: none is. Its payload may be a view of the message. */
  take({ packet, fragment, fragments, address, data }: UdpMessage): Datagram | null {
    const payload = fragments === 1 ? data : this.#joiner.add(packet, fragment, fragments, data);
    const destination = payload === null ? null : this.#destinationOf(address);
    return payload === null || destination === null ? null : { payload, destination };
  }

  #destinationOf(address: Uint8Array): Destination | null {
    if (!isSame(address, this.#address)) {
      this.#address = new Uint8Array(address);
      this.#from = decodeAddress(address);
    }
    return this.#from;
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  let at = one.length === other.length ? one.length : -1;
  while (at > 0 && one[at - 1] === other[at - 1]) at--;
  return at === 0;
}
