/** Datagrams in a stream: plain, packetaddr and XUDP (mux.cool frames of session 0). */
import { randomBytes } from "node:crypto";
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Datagram, Destination } from "#core/session.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { bytesOfIp, ipFromBytes } from "#net/address/ip.ts";
import type { DatagramFraming } from "#protocols/udp-over-tcp/flow.ts";
import {
  encodeFrame,
  NETWORK_UDP,
  STATUS_END,
  STATUS_KEEP,
  STATUS_NEW,
  takeFrame,
} from "./mux-cool-frame.ts";

export const PACKET_ADDR_HOST = "sp.packet-addr.v2fly.arpa";
/** What other peers can take in one packet; larger ones are dropped. */
const MAX_PLAIN_BYTES = 8190;

function withLength(parts: readonly Uint8Array[]): Buffer {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const length = Buffer.allocUnsafe(2);
  length.writeUInt16BE(size);
  return Buffer.concat([length, ...parts]);
}

function takeLengthened(arrived: ByteQueue): Buffer | null {
  const head = arrived.peek(2);
  if (head === null) return null;
  const size = head.readUInt16BE();
  if (arrived.length < 2 + size) return null;
  arrived.skip(2);
  return arrived.take(size);
}

function sameDestination(a: Destination, b: Destination): boolean {
  return a.port === b.port && (a.ip !== null && b.ip !== null ? a.ip === b.ip : a.host === b.host);
}

/** LEN(2) DATA, one peer per stream. What goes elsewhere is dropped. */
export function plainFraming(peer: Destination, role: "client" | "server"): DatagramFraming {
  return {
    encode({ payload, destination }) {
      if (payload.length === 0 || payload.length > MAX_PLAIN_BYTES)
        throw new DialError("unsupported", "datagram size");
      if (role === "client" && !sameDestination(destination, peer))
        throw new DialError("unsupported", "plain UDP has one destination");
      return withLength([payload]);
    },
    take(arrived) {
      const payload = takeLengthened(arrived);
      return payload === null ? null : { payload, destination: peer };
    },
  };
}

/** LEN(2) then ATYP(1: 1 IPv4, 2 IPv6) ADDR PORT(2) DATA. Addresses only. */
export const packetAddrFraming: DatagramFraming = {
  encode({ payload, destination: { ip, port } }) {
    if (ip === null) throw new DialError("unsupported", "packetaddr carries no names");
    if (payload.length > MAX_PLAIN_BYTES) throw new DialError("unsupported", "datagram size");
    const address = bytesOfIp(ip);
    const end = Buffer.allocUnsafe(2);
    end.writeUInt16BE(port);
    return withLength([Buffer.from([address.length === 4 ? 1 : 2]), address, end, payload]);
  },
  take(arrived) {
    const packet = takeLengthened(arrived);
    return packet === null ? null : decodePacketAddr(packet);
  },
};

export function decodePacketAddr(packet: Buffer): Datagram {
  const type = packet[0];
  const size = type === 1 ? 4 : type === 2 ? 16 : 0;
  if (size === 0 || packet.length < 3 + size)
    throw new ProtocolError("a packetaddr packet without an address");
  return {
    payload: packet.subarray(3 + size),
    destination: {
      host: null,
      ip: ipFromBytes(packet.subarray(1, 1 + size)),
      port: packet.readUInt16BE(1 + size),
    },
  };
}

/** Looks at the first packet without taking it. */
export function peekPacketAddr(bytes: Buffer): Destination | null {
  if (bytes.length < 2 || bytes.length < 2 + bytes.readUInt16BE()) return null;
  return decodePacketAddr(bytes.subarray(2, 2 + bytes.readUInt16BE())).destination;
}

/** The client's side of XUDP: one New, then Keep frames; every frame names its peer. */
export function xudpFraming(): DatagramFraming {
  let started = false;
  let last: Destination | null = null;
  const globalId = randomBytes(8); // identifies this flow; reveals nothing about the client
  return {
    encode({ payload, destination }) {
      const status = started ? STATUS_KEEP : STATUS_NEW;
      const frame = { session: 0, status, network: NETWORK_UDP, destination, data: payload };
      const bytes = encodeFrame(started ? frame : { ...frame, globalId });
      started = true;
      return bytes;
    },
    take(arrived) {
      for (let frame = takeFrame(arrived); frame !== null; frame = takeFrame(arrived)) {
        if (frame.status === STATUS_END) throw new ProtocolError("the server ended the flow");
        if (frame.session !== 0 || frame.status !== STATUS_KEEP || frame.data === null) continue;
        last = frame.destination ?? last;
        if (last !== null) return { payload: frame.data, destination: last };
      }
      return null;
    },
  };
}
