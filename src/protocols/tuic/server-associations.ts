/** Flows of datagrams of a client through its TUIC connection: one for each association that it uses. */
import type { DatagramFlow, Destination } from "#core/session.ts";
import { oldestKey, valueAt } from "#lib/at.ts";
import { type ClientFlow, clientFlow } from "#net/udp/udp-clients.ts";
import { PacketChannel, type PacketWay } from "./packet-channel.ts";
import type { Packet } from "./wire.ts";

/** Of one connection. One more takes the place of the one that was silent the longest. */
const MOST = 1024;

interface ServerAssociation {
  readonly channel: PacketChannel;
  /** Answers go the way that the client took last. */
  way: PacketWay;
  /** Null: its first datagram is not whole yet. */
  flow: ClientFlow | null;
}

export class ServerAssociations {
  readonly #onFlow: (flow: DatagramFlow, first: Destination) => void;
  /** In the order of their last use. */
  readonly #open = new Map<number, ServerAssociation>();

  /** `onFlow` takes a new flow over, and disposes of it when it is idle. */
  constructor(onFlow: (flow: DatagramFlow, first: Destination) => void) {
    this.#onFlow = onFlow;
  }

  take(packet: Packet, way: PacketWay): void {
    const id = packet.association;
    const known = this.#open.get(id) ?? { channel: new PacketChannel(id), way, flow: null };
    known.way = way;
    this.#open.delete(id); // and back, as the youngest
    if (this.#open.size >= MOST) this.end(oldestKey(this.#open));
    this.#open.set(id, known);
    const item = known.channel.take(packet);
    if (item === null) return;
    if (known.flow !== null) return known.flow.arrived(item);
    const flow = clientFlow(
      (answer) => known.channel.send(sourceOf(answer), known.way),
      () => this.#open.get(id) === known && this.#open.delete(id),
    );
    known.flow = flow;
    flow.arrived(item);
    this.#onFlow(flow.flow, item.destination);
  }

  /** The client has ended it. */
  end(id: number): void {
    if (!this.#open.has(id)) return;
    const { flow } = valueAt(this.#open, id);
    this.#open.delete(id);
    flow?.close();
  }

  /** The connection is over. */
  close(): void {
    for (const id of this.#open.keys()) this.end(id);
  }
}

/** Clients compare the source of an answer with addresses. */
function sourceOf({ payload, destination }: Parameters<PacketChannel["send"]>[0]) {
  const { ip, port } = destination;
  return { payload, destination: ip === null ? destination : { host: null, ip, port } };
}
