/** The bytes of a document on their way to a thread: in pieces, because one is copied in one turn of the event loop. */
import { parentPort, type Worker } from "node:worker_threads";
import type { Slices } from "#core/slices.ts";

/** Copied in well under a millisecond. */
const PIECE_BYTES = 256 * 1024;

/** To a thread that awaits `receivedBytes`; what is sent to one that has ended is dropped. `bytes` stay the caller's. */
export async function sendBytes(thread: Worker, bytes: Uint8Array, slices: Slices): Promise<void> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const piece = new Uint8Array(bytes.subarray(at, at + PIECE_BYTES)); // a copy that the thread gets
    thread.postMessage(piece, [piece.buffer]);
    await slices.pause();
  }
}

/** In the thread: resolves when `length` bytes have come, at least one. */
export function receivedBytes(length: number): Promise<Uint8Array<ArrayBuffer>> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
  const bytes = new Uint8Array(length);
  let at = 0;
  const take = (piece: Uint8Array): void => {
    bytes.set(piece, at);
    at += piece.length;
    if (at < length) return;
    parentPort?.off("message", take);
    resolve(bytes);
  };
  parentPort?.on("message", take);
  return promise;
}
