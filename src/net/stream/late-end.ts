import type { Readable } from "node:stream";

/**
 * Hears of the stream's end, also where it has been already: whoever read a handshake was given it with the last byte,
 * and a stream says it once. Then the listener is called in the next turn of the event loop.
 */
export function onEnd(stream: Readable, listener: () => void): void {
  stream.on("end", listener);
  if (stream.readableEnded) setImmediate(listener);
}
