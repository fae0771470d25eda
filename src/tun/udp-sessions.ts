/**
 * UDP of a TUN: one session for each client socket, whatever its destinations; replies are packets from the address
 * that replied.
 */
import type { Datagram, DatagramFlow, Destination, Endpoint, Ip } from "#core/session.ts";
import { bytesOfIp, ipFromBytes } from "#net/address/ip.ts";
import { clientFlow, SILENT_MS, type ClientFlow } from "#net/udp/udp-clients.ts";
import { FlowTable } from "./flow-table.ts";
import { type Packet, UDP_HEADER_BYTES } from "#net/packet/packet.ts";
import type { PacketWriter } from "./packet-writer.ts";
import { IdleList } from "./idle-list.ts";
import { itemAt } from "#lib/at.ts";

/** Sessions of one family. */
const MOST_SESSIONS = 16_384;
const NONE = -1;

export interface UdpSessionsEnv {
  readonly writer: PacketWriter;
  /** Takes a new session over. */
  readonly open: (source: Endpoint, destination: Destination, flow: DatagramFlow) => void;
  /** A reply that is longer than a packet may be. */
  readonly tooLong: (bytes: number, destination: Endpoint) => void;
}

interface Session {
  readonly slot: number;
  readonly client: ClientFlow;
  readonly source: Endpoint;
  readonly sourceBytes: Uint8Array;
  /** The destination of the last datagram: most of them have the same. */
  destination: Destination;
  readonly destinationBytes: Uint8Array;
  /** Where the last reply came from. */
  replyIp: Ip | null;
  replyBytes: Uint8Array;
}

/** One family. */
export class UdpSessions {
  readonly #env: UdpSessionsEnv;
  readonly #table: FlowTable;
  readonly #sessions: (Session | null)[] = [];
  /** By the last datagram of either direction. */
  readonly #line = new IdleList(MOST_SESSIONS);
  #nowMs: number;

  constructor(family: 4 | 6, env: UdpSessionsEnv, nowMs: number) {
    this.#env = env;
    this.#nowMs = nowMs;
    this.#table = new FlowTable(MOST_SESSIONS, family === 4 ? 2 : 5);
  }

  get size(): number {
    return this.#table.size;
  }

  /** About once a second: the time of what happens until the next. */
  tick(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  /** Is there one of the client whose address and port are at these offsets? */
  knows(packet: Packet, addressAt: number, portAt: number): boolean {
    return this.#find(packet, addressAt, portAt) !== NONE;
  }

  #find({ view, addressBytes }: Packet, addressAt: number, portAt: number): number {
    const { key } = this.#table;
    const words = addressBytes / 4;
    for (let index = 0; index < words; index++) key[index] = view.getInt32(addressAt + index * 4);
    key[words] = view.getUint16(portAt);
    return this.#table.find();
  }

  /** False: there are too many sessions. */
  deliver(packet: Packet): boolean {
    const { sourceAt, transportAt } = packet;
    const slot = this.#find(packet, sourceAt, transportAt);
    const session = slot === NONE ? this.#open(packet) : itemAt(this.#sessions, slot);
    if (session === null) return false;
    this.#line.touch(session.slot, this.#nowMs);
    const destination = destinationOf(packet, session);
    const from = transportAt + UDP_HEADER_BYTES;
    session.client.arrived({ payload: packet.bytes.subarray(from, packet.end), destination });
    if (slot === NONE) this.#env.open(session.source, destination, session.client.flow);
    return true;
  }

  close(): void {
    for (const session of this.#sessions) session?.client.close();
  }

  #open(packet: Packet): Session | null {
    if (this.#table.size === MOST_SESSIONS && this.#line.hasRested(SILENT_MS, this.#nowMs))
      this.#sessions[this.#line.head]?.client.close();
    const slot = this.#table.insert();
    if (slot === NONE) return null;
    this.#line.append(slot, this.#nowMs);
    const { bytes, sourceAt, destinationAt, addressBytes } = packet;
    const sourceBytes = bytes.slice(sourceAt, sourceAt + addressBytes);
    const destinationBytes = bytes.slice(destinationAt, destinationAt + addressBytes);
    const session: Session = {
      slot,
      client: clientFlow(
        (item) => this.#reply(session, item),
        () => {
          this.#table.delete(slot);
          this.#line.remove(slot);
          this.#sessions[slot] = null;
        },
        (to) => this.#refuse(session, to),
      ),
      source: { ip: ipFromBytes(sourceBytes), port: packet.sourcePort },
      sourceBytes,
      destination: { host: null, ip: ipFromBytes(destinationBytes), port: packet.destinationPort },
      destinationBytes,
      replyIp: null,
      replyBytes: sourceBytes,
    };
    this.#sessions[slot] = session;
    return session;
  }

  #reply(session: Session, { payload, destination: { ip, port } }: Datagram): void {
    if (ip === null) return; // a name cannot be a sender; sessions that began with an address never see one
    if (ip !== session.replyIp) {
      session.replyIp = ip;
      session.replyBytes = bytesOfIp(ip);
    }
    this.#line.touch(session.slot, this.#nowMs);
    const { replyBytes, sourceBytes, source } = session;
    if (replyBytes.length !== sourceBytes.length) return; // a sender of the other family: no packet can carry both
    if (!this.#env.writer.udp(replyBytes, port, sourceBytes, source.port, payload))
      this.#env.tooLong(payload.length, source);
  }

  #refuse({ sourceBytes, source }: Session, { ip, port }: Destination): void {
    const destination = ip === null ? null : bytesOfIp(ip);
    if (destination?.length === sourceBytes.length)
      this.#env.writer.portUnreachable(destination, port, sourceBytes, source.port);
  }
}

function destinationOf(packet: Packet, session: Session): Destination {
  const { destination, destinationBytes } = session;
  const port = packet.destinationPort;
  if (destination.port === port && packet.hasAt(packet.destinationAt, destinationBytes)) return destination;
  destinationBytes.set(
    packet.bytes.subarray(packet.destinationAt, packet.destinationAt + packet.addressBytes),
  );
  session.destination = { host: null, ip: ipFromBytes(destinationBytes), port };
  return session.destination;
}
