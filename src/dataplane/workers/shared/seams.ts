import { int32At } from "#lib/at.ts";

/**
 * Where one thread hands on what another takes at once, or has read what another may be giving back: what is written here
 * of the two must hold however long the thread stands still there. Tests stop it there.
 */

/** By the index of each in the memory. */
export const SEAMS = [
  // Of the main thread.
  /** Behind a command: the worker may have obeyed it. */
  "commanded",
  /** Behind the return of a slot: the worker may have given it out again. */
  "released",
  /** Between reading events and acting on them. */
  "read",
  /** Between the number of a worker's descriptor being read and its name being asked for. */
  "named",
  // Of a worker.
  /** Behind an event: the main thread may have acted on it. */
  "reported",
  /** Between a descriptor being struck off and its close. */
  "closing",
  /** Between what a wire holds being struck off and being freed. */
  "freeing",
  /** Between reading the address of a TLS context and making an object of it. */
  "context",
  /** Behind a client's entry into its slot. */
  "admitted",
  /** Between the entry of a connection that the worker has decided and the look whether its version is still in force. */
  "committing",
  /** Between striking off a connection that the worker has decided and the event of its end. */
  "serving",
] as const;

export type Seam = (typeof SEAMS)[number];

/** How long each of them lasts, in ms; 0 at first. */
export function newSeamMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(SEAMS.length * 4);
}

/** Called at a seam. Undefined in the product: nothing waits there. */
export type AtSeam = (seam: Seam) => void;

export function atSeams(memory: SharedArrayBuffer): AtSeam {
  const lastsMs = new Int32Array(memory);
  return (seam) => {
    const at = SEAMS.indexOf(seam);
    const ms = int32At(lastsMs, at);
    if (ms > 0) Atomics.wait(lastsMs, at, ms, ms);
  };
}
