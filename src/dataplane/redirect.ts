/** Answers a new plain-HTTP connection instead of its origin. */
import type { Duplex } from "node:stream";

export const HTTP_PORT = 80;
/** For the request, and again for the answer to be taken. */
const DRAIN_MS = 5_000;
/** A request is answered after this many bytes, whatever it still has to say. */
const MAX_REQUEST_BYTES = 64 * 1024;

/** Swallows a request, answers 302, and ends. Settles when the stream is closed; never rejects. */
export function redirect(stream: Duplex, location: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let seen = "";
  let bytes = 0;
  const timer = setTimeout(() => stream.destroy(), 2 * DRAIN_MS);
  const giveUp = setTimeout(() => answer(), DRAIN_MS);
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    seen = (seen + chunk.toString("latin1")).slice(-(chunk.length + 3));
    if (seen.includes("\r\n\r\n") || bytes > MAX_REQUEST_BYTES) answer();
  };
  const answer = (): void => {
    clearTimeout(giveUp);
    stream.off("data", onData).resume(); // what still comes is thrown away until the end or the deadline
    if (!stream.writableEnded) stream.end(message(location));
  };
  stream.once("close", () => {
    clearTimeout(timer);
    clearTimeout(giveUp);
    resolve();
  });
  stream.on("data", onData).once("end", answer).resume(); // a protocol may have paused it
  if (stream.closed) resolve();
  return promise;
}

function message(location: string): string {
  const text = "The traffic quota is used up; see the page at Location.\n";
  return [
    "HTTP/1.1 302 Found",
    `Location: ${location}`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(text)}`,
    "Cache-Control: no-store",
    "Connection: close",
    "",
    text,
  ].join("\r\n");
}
