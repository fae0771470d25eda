/** The bytes of a document on their way to a thread: in pieces, because one is copied in one turn of the event loop. */
import type { Worker } from "node:worker_threads";
import type { on } from "node:events";
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

/** What a thread is sent, one after the other. */
export type Messages = ReturnType<typeof on>;

/** In the thread: `length` bytes, at least one. */
export async function receivedBytes(length: number, pieces: Messages): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length;) {
    const { value: [piece] = [] }: { value?: Uint8Array[] | undefined } = await pieces.next();
    if (piece === undefined) throw new Error("the bytes of a document have an end before their length");
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
