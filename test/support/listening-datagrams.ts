import type { Endpoint } from "#core/session.ts";
import { openDatagrams, type OpenedDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";

/** A UDP socket as inbounds get it, of the test. */
export function listeningDatagrams(at: Endpoint): Promise<OpenedDatagrams> {
  return openDatagrams({ at, reusePort: false, configure() {} }, new DatagramSockets());
}
