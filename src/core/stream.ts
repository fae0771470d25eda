import type { Duplex } from "node:stream";
import { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** On streams that are through with a chunk's memory as soon as it is being written, alone: they have copied it. */
export const COPIES = Symbol("the stream copies what is written to it");

/** On streams that give each chunk away with all the memory that it lies in: no other chunk, and no one else, has any of it. */
export const GIVES = Symbol("the stream gives its chunks away");

/**
 * Puts bytes back in front of all that a stream still has. Where it gives its chunks away they lie in memory of their own: what
 * a reader has joined is in a pool of the runtime, which others have parts of, and which cannot be given.
 */
export function putBack(stream: Duplex, bytes: Buffer): void {
  if (!(GIVES in stream)) return stream.unshift(bytes);
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  stream.unshift(own);
}

/**
 * On streams of nodes that give a stream before their server has reached the destination: where one fails before its first
 * byte, the dial has failed.
 */
export const ANSWERS_LATE = Symbol("the dial may still fail");

/** The same stream. */
export function answeringLate<Stream extends Duplex>(stream: Stream): Stream {
  return Object.assign(stream, { [ANSWERS_LATE]: true });
}

/**
 * Ends a stream as a peer would see a fault: a kernel TCP socket sends RST, anything else is destroyed with the error
 * (TLS, too: its close without `close_notify` is what a truncated connection looks like). Never throws.
 */
export function abortStream(stream: Duplex, error?: Error): void {
  if (!(stream instanceof Socket) || stream instanceof TLSSocket || stream.connecting || stream.destroyed)
    stream.destroy(error);
  else resetOrDestroy(stream, error);
}

function resetOrDestroy(socket: Socket, error: Error | undefined): void {
  // While its FIN is on the way the kernel handle takes no reset, and Node (26.10) would lose it without closing it.
  if (socket.writableEnded && !socket.writableFinished) return void socket.destroy(error);
  try {
    socket.resetAndDestroy();
  } catch {
    socket.destroy(error); // a local pipe: it is a Socket, but knows no RST
  }
}
