import type { Http2Stream } from "node:http2";

/**
 * True once the stream has closed. The library reports a request slightly later than it reads it, so a reset or the end
 * of the connection may already have been read; responding then throws outside any handler.
 */
export function isGone(stream: Http2Stream): boolean {
  return stream.destroyed || stream.closed;
}
