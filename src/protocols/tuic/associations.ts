/** The client's flows of datagrams in one TUIC connection: an association for each. */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Datagram, DatagramFlow } from "#core/session.ts";
import { PacketChannel, type PacketWay } from "./packet-channel.ts";
import { decodePacket, MOST_ASSOCIATIONS, type Packet } from "./wire.ts";

export interface AssociationsWay extends PacketWay {
  /** The server is told that the association is over. */
  dissociate(association: number): void;
  /** One has ended. */
  ended(): void;
}

export class Associations {
  readonly #way: AssociationsWay;
  readonly #flows = new Map<number, Association>();
  #next = 0;

  constructor(way: AssociationsWay) {
    this.#way = way;
  }

  /** Throws `DialError` where all numbers are taken. */
  open(): DatagramFlow {
    if (this.#flows.size >= MOST_ASSOCIATIONS)
      throw new DialError("failed", "tuic: no more flows of datagrams fit into a connection");
    while (this.#flows.has(this.#next)) this.#next = (this.#next + 1) % MOST_ASSOCIATIONS;
    const id = this.#next;
    this.#next = (id + 1) % MOST_ASSOCIATIONS;
    const flow = new Association(id, this.#way, () => {
      this.#flows.delete(id);
      this.#way.ended();
    });
    this.#flows.set(id, flow);
    return flow;
  }

  get isEmpty(): boolean {
    return this.#flows.size === 0;
  }

  /** A packet of the server's; one that cannot be read is dropped, as on any network. The bytes are lent. */
  take(bytes: Uint8Array): void {
    try {
      const packet = decodePacket(bytes);
      if (packet !== null) this.#flows.get(packet.association)?.take(packet);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
  }

  /** The connection is over. */
  close(): void {
    for (const flow of this.#flows.values()) flow.close();
  }
}

class Association implements DatagramFlow {
  readonly closed: Promise<void>;
  readonly #id: number;
  readonly #way: AssociationsWay;
  readonly #channel: PacketChannel;
  readonly #settle: () => void;
  #isOver = false;
  #on: (item: Datagram) => void = () => {};

  constructor(id: number, way: AssociationsWay, forget: () => void) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#id = id;
    this.#way = way;
    this.#channel = new PacketChannel(id);
    this.#settle = () => {
      forget();
      resolve();
    };
  }

  receive(on: (item: Datagram) => void): void {
    this.#on = on;
  }

  send(item: Datagram): void {
    if (!this.#isOver) this.#channel.send(item, this.#way);
  }

  take(packet: Packet): void {
    const item = this.#channel.take(packet);
    if (item !== null) this.#on(item);
  }

  /** The connection is over. */
  close(): void {
    this.#isOver = true;
    this.#settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isOver) return;
    this.close();
    this.#way.dissociate(this.#id);
  }
}
