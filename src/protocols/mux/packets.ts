import { DialError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import { decodeSocksAddress, encodeSocksAddress, MAX_SOCKS_ADDRESS } from "#net/address/socks-address.ts";
import type { DatagramFraming } from "#protocols/udp-over-tcp/flow.ts";

const MAX_PAYLOAD = 0xffff;

function withSize(head: Buffer, payload: Uint8Array): Buffer {
  if (payload.length > MAX_PAYLOAD) throw new DialError("unsupported", "a datagram of more than 65535 bytes");
  const out = Buffer.allocUnsafe(head.length + 2 + payload.length);
  head.copy(out);
  out.writeUInt16BE(payload.length, head.length);
  out.set(payload, head.length + 2);
  return out;
}

/** ADDRESS in SOCKS form, SIZE(2, big endian) DATA. A client names what it asks for, a server where it came from. */
export const packetFraming = (prefer: "host" | "ip"): DatagramFraming => ({
  encode: ({ payload, destination }) => withSize(encodeSocksAddress(destination, prefer), payload),
  take(arrived) {
    const head = arrived.peekUpTo(MAX_SOCKS_ADDRESS + 2);
    const address = decodeSocksAddress(head);
    if (address === null || head.length < address.next + 2) return null;
    const end = address.next + 2 + head.readUInt16BE(address.next);
    const packet = arrived.take(end);
    return packet && { payload: packet.subarray(address.next + 2), destination: address.destination };
  },
});

/** SIZE(2, big endian) DATA, all with one peer. */
export const datagramFraming = (peer: Destination): DatagramFraming => ({
  encode: ({ payload }) => withSize(Buffer.alloc(0), payload),
  take(arrived) {
    const head = arrived.peek(2);
    const packet = head && arrived.take(2 + head.readUInt16BE());
    return packet && { payload: packet.subarray(2), destination: peer };
  },
});
