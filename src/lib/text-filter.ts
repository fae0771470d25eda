/**
 * Which texts are in a set, as far as another thread has to know: never "no" for one that is in it, and "yes" for few that
 * are not. One thread adds and removes, any thread asks, without a lock.
 */

/** For some thousand texts; with 4,096 a fifth of all others are taken for one of them. */
const COUNTERS = 1 << 14;
/** A counter that has been so high stays there: how many it stands for is not known any more. */
const HIGHEST = 255;

export class TextFilter {
  readonly memory: SharedArrayBuffer;
  readonly #counters: Uint8Array;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(COUNTERS)) {
    this.memory = memory;
    this.#counters = new Uint8Array(memory);
  }

  /** Of a text that is not in the set. */
  add(text: string): void {
    const at = placeOf(text);
    if (Atomics.load(this.#counters, at) < HIGHEST) Atomics.add(this.#counters, at, 1);
  }

  /** Of a text that is in the set. */
  remove(text: string): void {
    const at = placeOf(text);
    if (Atomics.load(this.#counters, at) < HIGHEST) Atomics.sub(this.#counters, at, 1);
  }

  mayHave(text: string): boolean {
    return Atomics.load(this.#counters, placeOf(text)) > 0;
  }
}

/** FNV-1a, folded. */
function placeOf(text: string): number {
  let hash = 0x811c_9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  return (hash ^ (hash >>> 14) ^ (hash >>> 28)) & (COUNTERS - 1);
}
