import type { Duplex } from "node:stream";
import { Socket } from "node:net";

/** Ends a stream as a peer would see a fault: a kernel socket sends RST, anything else is destroyed with the error. */
export function abortStream(stream: Duplex, error?: Error): void {
  if (stream instanceof Socket && !stream.destroyed) stream.resetAndDestroy();
  else stream.destroy(error);
}
