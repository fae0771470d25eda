import type { Readable } from "node:stream";

/**
 * Calls the listener at the stream's end, also when it has been already: a reader of a handshake may have got it with
 * the last byte, and a stream emits it once. Then the listener is called in the next turn of the event loop.
 */
export function onEnd(stream: Readable, listener: () => void): void {
  stream.on("end", listener);
  if (stream.readableEnded) setImmediate(listener);
}
