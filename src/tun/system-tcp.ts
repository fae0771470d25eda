/**
 * TCP of the system stack: packets of clients are turned towards a listener of the kernel, and its packets back, by
 * changing addresses and ports where they lie. What is TCP about TCP stays with the kernel.
 */
import { GSO_TCP, NEEDS_CHECKSUM, PACKET_AT, type PacketDevice } from "#platform/tun.ts";
import { adjust, adjustPartial, fold, pseudoSum, sumOf, takenFrom } from "#net/packet/checksum.ts";
import type { NatTable } from "./nat-table.ts";
import { type Packet, TCP } from "#net/packet/packet.ts";
import type { PacketWriter } from "./packet-writer.ts";
import { leaveChecksum, leaveCutting, pieceSize } from "./virtio-header.ts";
import { byteAt } from "#lib/at.ts";

const FIN = 0x01;
const SYN = 0x02;
const RST = 0x04;
const ACK = 0x10;
const FLAGS_AT = 13;
const CHECKSUM_AT = 16;
const V4_CHECKSUM_AT = PACKET_AT + 10;

export interface SystemTcpEnv {
  /** The TUN's own address, where the listener is, and the next one, which clients seem to come from. */
  readonly address: Uint8Array;
  readonly next: Uint8Array;
  readonly listenPort: number;
  readonly nat: NatTable;
  readonly device: PacketDevice;
  readonly writer: PacketWriter;
  /** May this packet's flow be opened? False: it is refused with a reset. */
  readonly admits: (packet: Packet) => boolean;
}

/** One family. */
export class SystemTcp {
  readonly #env: SystemTcpEnv;
  /** The sum of what every packet to the listener carries. */
  readonly #addressSum: number;

  constructor(env: SystemTcpEnv) {
    this.#env = env;
    const both = Uint8Array.from([...env.next, ...env.address]);
    this.#addressSum = sumOf(new DataView(both.buffer), 0, both.length);
  }

  handle(packet: Packet, nowMs: number): void {
    const { address, next, listenPort } = this.#env;
    const ofListener = packet.sourcePort === listenPort && packet.hasAt(packet.sourceAt, address);
    if (ofListener && packet.hasAt(packet.destinationAt, next)) this.#toClient(packet, nowMs);
    else this.#toListener(packet, nowMs);
  }

  /** Is there a flow of the client at the far end of a packet that `mend` has written? Offsets: source and destination, ports. */
  knows({ view, addressBytes }: Packet, addressesAt: number, portsAt: number): boolean {
    const { flows } = this.#env.nat;
    const words = addressBytes / 4;
    for (let index = 0; index < words; index++) {
      flows.key[index] = view.getInt32(addressesAt + addressBytes + index * 4);
      flows.key[words + index] = view.getInt32(addressesAt + index * 4);
    }
    flows.key[words * 2] = (view.getUint16(portsAt + 2) << 16) | view.getUint16(portsAt);
    return flows.find() >= 0;
  }

  #toListener(packet: Packet, nowMs: number): void {
    const { nat, writer, device, address, next, listenPort } = this.#env;
    const port = this.#portOf(packet, nat, nowMs);
    if (port === 0) {
      const flags = byteAt(packet.bytes, packet.transportAt + FLAGS_AT);
      if ((flags & RST) === 0) writer.reset(packet, flags);
      return;
    }
    const { view, bytes, sourceAt, destinationAt, addressBytes, transportAt } = packet;
    const addresses = takenFrom(view, sourceAt, sourceAt + addressBytes * 2) + this.#addressSum;
    const ports = takenFrom(view, transportAt, transportAt + 4) + port + listenPort;
    bytes.set(next, sourceAt);
    bytes.set(address, destinationAt);
    view.setUint16(transportAt, port);
    view.setUint16(transportAt + 2, listenPort);
    mend(packet, addresses, ports);
    device.write(device.incoming, packet.length);
  }

  #portOf(packet: Packet, nat: NatTable, nowMs: number): number {
    writeKey(packet, nat.flows.key);
    const known = nat.find(nowMs);
    if (known !== 0) return known;
    const flags = byteAt(packet.bytes, packet.transportAt + FLAGS_AT);
    if ((flags & (SYN | ACK | RST | FIN)) !== SYN || !this.#env.admits(packet)) return 0;
    return nat.add(nowMs);
  }

  #toClient(packet: Packet, nowMs: number): void {
    const { nat, device } = this.#env;
    const slot = nat.slotOf(packet.destinationPort, nowMs);
    if (slot < 0) return;
    const { view, sourceAt, destinationAt, addressBytes, transportAt } = packet;
    const words = addressBytes / 4;
    let addresses = takenFrom(view, sourceAt, sourceAt + addressBytes * 2);
    let ports = takenFrom(view, transportAt, transportAt + 4);
    for (let index = 0; index < words; index++) {
      view.setInt32(destinationAt + index * 4, nat.flows.word(slot, index));
      view.setInt32(sourceAt + index * 4, nat.flows.word(slot, words + index));
    }
    const both = nat.flows.word(slot, words * 2);
    view.setUint16(transportAt, both & 0xffff);
    view.setUint16(transportAt + 2, both >>> 16);
    addresses += sumOf(view, sourceAt, sourceAt + addressBytes * 2);
    ports += sumOf(view, transportAt, transportAt + 4);
    mend(packet, addresses, ports);
    this.#narrow(packet);
    device.write(device.incoming, packet.length);
  }

  /** Where a hop on the way takes less the kernel cuts the segment, or cuts its run of segments into shorter ones. */
  #narrow(packet: Packet): void {
    const { writer, device } = this.#env;
    const { view, bytes, family, destinationAt, transportAt, length } = packet;
    const most = writer.paths[family].most(bytes, destinationAt, length);
    const payloadAt = transportAt + (byteAt(bytes, transportAt + 12) >> 4) * 4;
    const room = most - (payloadAt - PACKET_AT);
    const kind = byteAt(bytes, 1);
    if (most === length || !device.hasHeader || (kind !== 0 && pieceSize(view) <= room)) return;
    if ((byteAt(bytes, 0) & NEEDS_CHECKSUM) === 0) leaveSum(packet);
    leaveCutting(view, kind === 0 ? GSO_TCP[family] : kind, payloadAt, room);
  }
}

function leaveSum({ view, sourceAt, addressBytes, transportAt, end }: Packet): void {
  leaveChecksum(view, transportAt, CHECKSUM_AT);
  const pseudo = pseudoSum(view, sourceAt, addressBytes, TCP, end - transportAt);
  view.setUint16(transportAt + CHECKSUM_AT, fold(pseudo));
}

/** See `NatTable.flows`. */
function writeKey({ view, sourceAt, addressBytes, transportAt }: Packet, key: Int32Array): void {
  const words = addressBytes / 2;
  for (let index = 0; index < words; index++) key[index] = view.getInt32(sourceAt + index * 4);
  key[words] = view.getInt32(transportAt);
}

/** Where the kernel has left the sum to the device, the field holds that of the pseudo-header only: no ports in it. */
function mend(packet: Packet, addresses: number, ports: number): void {
  const { view, bytes, family, transportAt } = packet;
  if (family === 4) adjust(view, V4_CHECKSUM_AT, addresses);
  if ((byteAt(bytes, 0) & NEEDS_CHECKSUM) !== 0) adjustPartial(view, transportAt + CHECKSUM_AT, addresses);
  else adjust(view, transportAt + CHECKSUM_AT, addresses + ports);
}
