import { openCollection } from "./collection.ts";
import { openTrim } from "./linux/heap.ts";
import { openCodeRelease } from "./linux/own-code.ts";

/** For what follows at once to be over, and no more often: each collection costs the main thread some tens of milliseconds. */
const COLLECT_MS = 1_000;
/** For the collection to have ended, which gives up memory of the C library. */
const TRIM_MS = 3_000;
/** For V8 to be done with what it does by itself behind a collection, of which the code would come back. */
const DROP_MS = 20_000;

/**
 * Gives memory back to the system behind works that left much of it unused: the start, large documents, reloads, storms of
 * clients. First the heap's, in steps, then the C library's, and what was read of the runtime's own file. Keeps no program
 * running.
 */
export class MemoryRelease {
  readonly #collect = openCollection();
  readonly #trim = openTrim();
  readonly #dropCode = openCodeRelease();
  #isRunning = false;
  #isAsked = false;
  #isToDrop = false;

  /** Within some seconds: once, however often it is asked meanwhile. */
  soon(): void {
    this.#isAsked = true;
    if (this.#isRunning || (this.#collect === null && this.#trim === null)) return;
    this.#isRunning = true;
    setTimeout(() => this.#begin(), COLLECT_MS).unref();
  }

  #begin(): void {
    this.#isAsked = false;
    this.#collect?.();
    setTimeout(() => this.#end(), TRIM_MS).unref();
  }

  #end(): void {
    this.#trim?.();
    this.#dropLater();
    this.#isRunning = false;
    if (this.#isAsked) this.soon();
  }

  #dropLater(): void {
    const drop = this.#dropCode;
    if (drop === null || this.#isToDrop) return;
    this.#isToDrop = true;
    setTimeout(() => {
      this.#isToDrop = false;
      drop();
    }, DROP_MS).unref();
  }
}
