/** Sending and receiving datagrams in batches. */
import { openDatagramBatches, type DatagramBatches } from "./linux/datagram-batches.ts";

export type { DatagramBatches } from "./linux/datagram-batches.ts";
export type { Control } from "./linux/control-message.ts";
export type { Outgoing } from "./linux/send-batch.ts";
export { UV_READABLE, type ReadinessWatch } from "./linux/uv-poll.ts";
export { AF_INET, decodeSockaddr, encodeSockaddr, SOCKADDR_BYTES } from "./linux/sockaddr.ts";

/**
 * Of this thread. Null where this system or runtime cannot: datagrams come and go one at a time. `runs` false: as with a
 * kernel that neither cuts messages into datagrams nor joins them.
 */
export function openBatchedDatagrams(runs = true): DatagramBatches | null {
  if (process.arch !== "x64" && process.arch !== "arm64") return null; // the layouts are those of 64 bits
  return openDatagramBatches(runs);
}
