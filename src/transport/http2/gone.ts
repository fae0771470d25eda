import type { Http2Stream } from "node:http2";

/**
 * Has it closed? The library tells of a request a little later than it read it: its reset, or the connection's end, may
 * have come in the same piece, and answering then is a throw in the middle of nowhere.
 */
export function isGone(stream: Http2Stream): boolean {
  return stream.destroyed || stream.closed;
}
