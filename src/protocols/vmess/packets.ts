/** Datagrams in VMess: a chunk is a packet, so what the stream hands over in one piece is one packet. */
import { DialError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import type { DatagramFraming } from "#protocols/udp-over-tcp/flow.ts";
import { decodePacketAddr, packetAddrFraming } from "#protocols/shared/datagram-framing.ts";

const MAX_BYTES = 8192;
const LENGTH_BYTES = 2;

/** One peer a stream. A client's packets to others are dropped. */
export function plainFraming(peer: Destination, role: "client" | "server"): DatagramFraming {
  return {
    encode({ payload, destination }) {
      const elsewhere =
        destination.port !== peer.port || (destination.ip ?? destination.host) !== (peer.ip ?? peer.host);
      if (role === "client" && elsewhere) throw new DialError("unsupported", "plain UDP has one destination");
      return Buffer.from(checked(payload)); // a copy: the stream keeps it
    },
    take(arrived) {
      return arrived.length === 0 ? null : { payload: arrived.takeSome(arrived.length), destination: peer };
    },
  };
}

/** Packetaddr: each packet with its address in front, and without a length, which the chunk has. */
export const packetAddr: DatagramFraming = {
  encode: (item) => checked(packetAddrFraming.encode(item).subarray(LENGTH_BYTES)),
  take: (arrived) => (arrived.length === 0 ? null : decodePacketAddr(arrived.takeSome(arrived.length))),
};

/** An empty chunk would end the stream; a longer one is more than peers read. */
function checked(payload: Uint8Array): Buffer {
  if (payload.length === 0 || payload.length > MAX_BYTES) throw new DialError("unsupported", "datagram size");
  return Buffer.from(payload.buffer, payload.byteOffset, payload.length);
}
