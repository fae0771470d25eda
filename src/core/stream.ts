import type { Duplex } from "node:stream";
import { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** Ends a stream as a peer would see a fault: a kernel socket sends RST, anything else is destroyed with the error. */
export function abortStream(stream: Duplex, error?: Error): void {
  // A TLSSocket is a Socket by class, but it has no kernel handle of its own and would throw.
  const kernel = stream instanceof Socket && !(stream instanceof TLSSocket);
  if (kernel && !stream.destroyed) stream.resetAndDestroy();
  else stream.destroy(error);
}
