/** The door to datagrams in batches. */
import { openDatagramBatch, type DatagramBatch } from "./linux/datagram-batch.ts";
import { openPoller, type Poller } from "./linux/uv-poll.ts";

export { BATCH } from "./linux/datagram-batch.ts";
export type { DatagramBatch } from "./linux/datagram-batch.ts";
export type { Poller, Watch } from "./linux/uv-poll.ts";
export { AF_INET, decodeSockaddr, encodeSockaddr, SOCKADDR_BYTES } from "./linux/sockaddr.ts";

export interface BatchedDatagrams {
  readonly batch: DatagramBatch;
  readonly poller: Poller;
}

/** Of this thread. Null where this system or runtime cannot: datagrams come and go one at a time. */
export function openBatchedDatagrams(): BatchedDatagrams | null {
  if (process.arch !== "x64" && process.arch !== "arm64") return null; // the layouts are those of 64 bits
  const batch = openDatagramBatch();
  const poller = batch === null ? null : openPoller();
  return batch === null || poller === null ? null : { batch, poller };
}
