/** The system stack: what is done with every packet that the TUN gives. Nothing here waits and nothing throws. */
import type { TunAddress } from "#core/capture.ts";
import type { Ip } from "#core/session.ts";
import { type Cidr, cidrOf } from "#net/address/cidr.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { CHECKSUM_VALID, NEEDS_CHECKSUM, type PacketDevice, VNET_BYTES } from "#platform/tun.ts";
import { fold, pseudoSum, sumOf } from "#net/packet/checksum.ts";
import type { Hijack } from "./hijack.ts";
import { NatTable } from "./nat-table.ts";
import { ICMP, ICMP6, Packet, TCP, UDP, UDP_HEADER_BYTES } from "#net/packet/packet.ts";
import type { PacketWriter } from "./packet-writer.ts";
import { SystemTcp } from "./system-tcp.ts";
import { readTooBig } from "./too-big.ts";
import { UdpSessions, type UdpSessionsEnv } from "./udp-sessions.ts";
import { byteAt } from "#lib/at.ts";

export interface StackAddress extends TunAddress {
  /** Of the kernel's listener at `address`. */
  readonly listenPort: number;
}

export interface StackEnv extends Pick<UdpSessionsEnv, "open" | "tooLong"> {
  readonly device: PacketDevice;
  readonly writer: PacketWriter;
  /** Null: the family has no address on the device, and its packets are dropped. */
  readonly inet4: StackAddress | null;
  readonly inet6: StackAddress | null;
  readonly loopbackAddresses: readonly Ip[];
  readonly hijack: Hijack;
  /**
   * A question over UDP; the payload is lent until it returns. False: there is no DNS service, and the packet is one like any other.
   */
  readonly question: (payload: Uint8Array, packet: Packet) => boolean;
  /** An echo request for another host; `message` is lent until it returns. */
  readonly echo: (packet: Packet) => void;
  readonly nowMs: () => number;
}

interface Family {
  readonly own: Cidr;
  readonly next: Uint8Array;
  readonly broadcast: Uint8Array | null;
  readonly nat: NatTable;
  readonly tcp: SystemTcp;
  readonly udp: UdpSessions;
}

const ECHO_REQUEST = { [ICMP]: 8, [ICMP6]: 128 } as const;

export class Stack {
  readonly inet4: Family | null;
  readonly inet6: Family | null;
  readonly #env: StackEnv;
  readonly #packet: Packet;
  readonly #loopback: readonly Uint8Array[];
  #nowMs: number;

  constructor(env: StackEnv) {
    this.#env = env;
    this.#packet = new Packet(env.device.incoming.view);
    this.#loopback = env.loopbackAddresses.map(bytesOfIp);
    this.#nowMs = env.nowMs();
    this.inet4 = env.inet4 === null ? null : this.#family(4, env.inet4);
    this.inet6 = env.inet6 === null ? null : this.#family(6, env.inet6);
  }

  /** The packet in the device's `incoming`. */
  receive(length: number): void {
    const packet = this.#packet;
    if (!packet.read(length)) return;
    const family = packet.family === 4 ? this.inet4 : this.inet6;
    if (family === null || this.#isBroadcast(packet, family)) return;
    if (this.#loopback.length > 0 && this.#turnsBack(packet)) return;
    if (packet.protocol === TCP) family.tcp.handle(packet, this.#nowMs);
    else if (packet.protocol === UDP) this.#udp(packet, family);
    else this.#icmp(packet, family);
  }

  /** About once a second: sets the time for the events until the next tick, and drops idle flows. */
  tick(): void {
    this.#nowMs = this.#env.nowMs();
    for (const family of [this.inet4, this.inet6]) {
      family?.nat.sweep(this.#nowMs);
      family?.udp.tick(this.#nowMs);
    }
    this.#env.writer.paths[4].tick(this.#nowMs);
    this.#env.writer.paths[6].tick(this.#nowMs);
  }

  close(): void {
    this.inet4?.udp.close();
    this.inet6?.udp.close();
  }

  #family(family: 4 | 6, { address, next, listenPort }: StackAddress): Family {
    const { device, writer, open, tooLong } = this.#env;
    const own = cidrOf(`${address.ip}/${address.bits}`);
    const nat = new NatTable(family);
    const nextBytes = bytesOfIp(next);
    return {
      own,
      next: nextBytes,
      broadcast: family === 4 ? lastOf(own) : null,
      nat,
      tcp: new SystemTcp({
        address: bytesOfIp(address.ip),
        next: nextBytes,
        listenPort,
        nat,
        device,
        writer,
        admits: (packet) => !packet.isWithin(packet.destinationAt, own) || this.#isHijacked(packet),
      }),
      udp: new UdpSessions(family, { writer, open, tooLong }, this.#nowMs),
    };
  }

  #udp(packet: Packet, { own, udp }: Family): void {
    const { view, transportAt } = packet;
    const length = view.getUint16(transportAt + 4);
    if (length < UDP_HEADER_BYTES || transportAt + length > packet.end) return;
    packet.end = transportAt + length;
    if (packet.sourcePort === 0 || packet.destinationPort === 0 || !isIntact(packet)) return;
    if (this.#isHijacked(packet)) {
      const question = packet.bytes.subarray(transportAt + UDP_HEADER_BYTES, packet.end);
      if (this.#env.question(question, packet)) return;
    }
    if (packet.isWithin(packet.destinationAt, own) || !udp.deliver(packet))
      this.#env.writer.unreachable(packet, "port");
  }

  #icmp(packet: Packet, family: Family): void {
    const { bytes, transportAt, protocol } = packet;
    const type = bytes[transportAt];
    if (type !== ECHO_REQUEST[protocol as typeof ICMP | typeof ICMP6] || bytes[transportAt + 1] !== 0)
      return this.#learn(packet, family);
    if (packet.hasAt(packet.destinationAt, family.next)) echoBack(packet, this.#env.device);
    else this.#env.echo(packet);
  }

  /** A hop between us and a client takes no packet of that length. Believed of flows that there are: no one else knows their ports. */
  #learn(packet: Packet, { tcp, udp }: Family): void {
    const found = readTooBig(packet);
    if (found === null) return;
    const { mtu, protocol, addressesAt, portsAt } = found;
    const clientAt = addressesAt + packet.addressBytes;
    const isOurs =
      protocol === TCP
        ? tcp.knows(packet, addressesAt, portsAt)
        : protocol === UDP && udp.knows(packet, clientAt, portsAt + 2);
    if (isOurs) this.#env.writer.paths[packet.family].learn(packet.bytes, clientAt, mtu, this.#nowMs);
  }

  #isHijacked({ bytes, destinationAt, addressBytes, destinationPort }: Packet): boolean {
    return this.#env.hijack.takes(bytes, destinationAt, addressBytes, destinationPort);
  }

  #isBroadcast(packet: Packet, { broadcast }: Family): boolean {
    return broadcast !== null && packet.hasAt(packet.destinationAt, broadcast);
  }

  /** `loopback-address`: what goes there comes back to the sender, as if it had sent it itself. */
  #turnsBack(packet: Packet): boolean {
    if (!this.#loopback.some((address) => packet.hasAt(packet.destinationAt, address))) return false;
    swapAddresses(packet);
    this.#env.device.write(this.#env.device.incoming, packet.length);
    return true;
  }
}

/** The last address of a network; null where it is none, because the network has two addresses or one. */
function lastOf({ bytes, bits }: Cidr): Uint8Array | null {
  if (bits >= 31) return null;
  const last = Uint8Array.from(bytes);
  for (let at = bits; at < 32; at++) last[at >> 3] = byteAt(last, at >> 3) | (0x80 >> (at & 7));
  return last;
}

/** Sums stay what they are: the same words in another order. */
function swapAddresses({ view, sourceAt, destinationAt, addressBytes }: Packet): void {
  for (let at = 0; at < addressBytes; at += 4) {
    const word = view.getInt32(sourceAt + at);
    view.setInt32(sourceAt + at, view.getInt32(destinationAt + at));
    view.setInt32(destinationAt + at, word);
  }
}

/** Answers an echo request in the place of its destination. */
function echoBack(packet: Packet, device: PacketDevice): void {
  const { view, transportAt, protocol, addressBytes, sourceAt } = packet;
  swapAddresses(packet);
  view.setUint8(transportAt, protocol === ICMP ? 0 : 129);
  view.setUint16(transportAt + 2, 0);
  const length = packet.end - transportAt;
  const pseudo = protocol === ICMP ? 0 : pseudoSum(view, sourceAt, addressBytes, ICMP6, length);
  view.setUint16(transportAt + 2, 0xffff - fold(sumOf(view, transportAt, packet.end, pseudo)));
  device.incoming.bytes.fill(0, 0, VNET_BYTES);
  device.write(device.incoming, packet.length);
}

/** Is the checksum of a datagram good, or vouched for by the kernel? In IPv4 it may be missing. */
function isIntact({ bytes, view, family, transportAt, end, sourceAt, addressBytes }: Packet): boolean {
  if ((byteAt(bytes, 0) & (NEEDS_CHECKSUM | CHECKSUM_VALID)) !== 0) return true;
  if (view.getUint16(transportAt + 6) === 0) return family === 4;
  const pseudo = pseudoSum(view, sourceAt, addressBytes, UDP, end - transportAt);
  return fold(sumOf(view, transportAt, end, pseudo)) === 0xffff;
}
