import { int32At } from "#lib/at.ts";

/**
 * Where one thread hands on what another takes at once, or has read what another may be giving back: what is written here
 * of the two must hold however long the thread is kept from going on at that place. Tests keep it there.
 */

/** By the place of each in the memory. */
export const SEAMS = [
  // Of the main thread.
  /** Behind a command: the relay thread may have obeyed it. */
  "told",
  /** Behind the return of a slot: the relay thread may have given it out again. */
  "released",
  /** Between the news being read and what is done about them. */
  "heard",
  /** Between the number of a relay thread's descriptor being read and its name being asked for. */
  "named",
  // Of a relay thread.
  /** Behind news: the main thread may have done what it does about them. */
  "reported",
  /** Between a descriptor being struck off and its close. */
  "closing",
  /** Between what a port holds being struck off and being freed. */
  "freeing",
  /** Between the address of a TLS context being read and a conversation being made of it. */
  "context",
  /** Behind a client's entry into its slot. */
  "admitted",
  /** Between a session that goes by a standing answer being struck off and the news of its end. */
  "passing",
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
