/**
 * UDP over TCP: any stream protocol carries datagrams when it is asked for a magic name that the server catches. A
 * server without it tries to resolve that name and fails: this is the only negotiation.
 */
import type { Duplex } from "node:stream";
import type { Accept } from "#core/inbound.ts";
import type { DatagramFlow, Destination, Metadata } from "#core/session.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import { type DatagramFraming, StreamFlow } from "./flow.ts";
import {
  encodePacket,
  encodeRequest,
  peekAddress,
  takePacket,
  takeRequest,
  type Request,
  type Version,
} from "./wire.ts";
import { asError } from "#core/errors.ts";

export { magicDestination, versionOf, type Version } from "./wire.ts";

/** The request waits for the first datagram, so it must come within this time of the stream. */
const REQUEST_TIMEOUT_MS = 60_000;

/** The client's side: `stream` leads to `magicDestination(version)`. Packet mode, so any destination may follow. */
export function clientFlow(stream: Duplex, version: Version, first: Destination): DatagramFlow {
  const opening = version === 2 ? encodeRequest({ connect: false, destination: first }) : null;
  return new StreamFlow(stream, framing(null, "host"), opening);
}

/**
 * The server's side: reads the request, then hands over a datagram session. `metadata` makes the session's metadata
 * for its first destination. A client that does not keep to the format loses its stream and nothing else.
 */
export async function acceptUdpOverTcp(
  stream: Duplex,
  version: Version,
  metadata: (destination: Destination) => Metadata,
  accept: Accept,
): Promise<void> {
  try {
    const step = version === 2 ? takeRequest : firstPacket;
    const { connect, destination } = await readHandshake(stream, step, REQUEST_TIMEOUT_MS);
    const flow = new StreamFlow(stream, framing(connect ? destination : null, "ip"));
    accept({ network: "udp", metadata: metadata(destination), flow });
  } catch (error) {
    stream.destroy(asError(error));
  }
}

/** Version 1 has no request: the first packet names the destination. */
function firstPacket(arrived: ByteQueue): Request | null {
  const destination = peekAddress(arrived);
  return destination === null ? null : { connect: false, destination };
}

function framing(fixed: Destination | null, prefer: "host" | "ip"): DatagramFraming {
  const addressing = fixed === null ? prefer : "none";
  return {
    encode: (item) => encodePacket(item, addressing),
    take: (arrived) => takePacket(arrived, fixed),
  };
}
