/** The TUN's stack on a device that is memory, and packets of both families to give it. */
import { keptDatagram } from "#core/kept-datagram.ts";
import type { Datagram, DatagramFlow, Destination, Endpoint, Ip } from "#core/session.ts";
import { Hijack } from "#tun/hijack.ts";
import { PacketWriter } from "#tun/packet-writer.ts";
import { tunAddress } from "#tun/settings.ts";
import { Stack, type StackAddress } from "#tun/stack.ts";
import { ipPacket, memoryTun, tcpSegment, udpDatagram, type Segment } from "./packets.ts";

/** The listener's. */
export const PORT = 4242;
export const MTU = 1500;
export const FAMILIES = {
  4: {
    client: "203.0.113.9",
    far: "198.51.100.2",
    own: "198.18.0.1",
    next: "198.18.0.2",
    other: "192.0.2.7",
  },
  6: {
    client: "fd00:1:0:0:0:0:0:9",
    far: "2001:db8:0:0:0:0:0:2",
    own: "fd00:9:0:0:0:0:0:1",
    next: "fd00:9:0:0:0:0:0:2",
    other: "2001:db8:0:0:0:0:0:7",
  },
} as const;
export const [SYN, RST, ACK, FIN] = [2, 4, 16, 1];

export interface Opened {
  readonly source: Endpoint;
  readonly destination: Destination;
  readonly flow: DatagramFlow;
  readonly got: Datagram[];
}

/** `send` answers with what the stack wrote for that one packet, without the headers of the device. */
export function memoryStack({ hasHeader = true, cutsDatagrams = false, dns = true } = {}) {
  const device = memoryTun(hasHeader, cutsDatagrams);
  const writer = new PacketWriter(device, MTU);
  const addresses = [
    { ip: "198.18.0.1" as Ip, bits: 30 },
    { ip: "fd00:9::1" as Ip, bits: 126 },
  ];
  const own = (family: 4 | 6): StackAddress => ({ ...tunAddress(addresses, family)!, listenPort: PORT });
  const opened: Opened[] = [];
  const questions: Buffer[] = [];
  const echoes: number[] = [];
  const clock = { nowMs: 0 };
  const stack = new Stack({
    device,
    writer,
    inet4: own(4),
    inet6: own(6),
    loopbackAddresses: ["192.0.2.99" as Ip],
    hijack: new Hijack([{ host: "0.0.0.0", port: 53 }], [own(4).next, own(6).next]),
    question: (payload) => {
      if (dns) questions.push(Buffer.from(payload));
      return dns;
    },
    echo: (packet) => void echoes.push(packet.length),
    open: (source, destination, flow) => {
      const got: Datagram[] = [];
      opened.push({ source, destination, flow, got });
      flow.receive((item) => got.push(keptDatagram(item)));
    },
    tooLong: () => {},
    nowMs: () => clock.nowMs,
  });
  const send = (packet: Buffer, header?: Buffer) => {
    device.written.length = 0;
    stack.receive(device.put(packet, header));
    return device.written.map((all) => all.subarray(10));
  };
  return { device, stack, send, opened, questions, echoes, clock };
}

export const tcp = (source: string, destination: string, segment: Segment) =>
  ipPacket({ source, destination, protocol: 6, transport: tcpSegment(segment) });
export const udp = (
  source: string,
  destination: string,
  from: number,
  to: number,
  payload = Buffer.from("hello"),
) => ipPacket({ source, destination, protocol: 17, transport: udpDatagram(from, to, payload) });
export const echo = (source: string, destination: string) => {
  const v6 = source.includes(":");
  const transport = Buffer.from([v6 ? 128 : 8, 0, 0, 0, 0, 7, 0, 1, 1, 2, 3]);
  return ipPacket({ source, destination, protocol: v6 ? 58 : 1, transport });
};
