import { randomFillSync } from "node:crypto";
import { KEY_BYTES } from "#transport/websocket/frames.ts";

const POOL_BYTES = 1024 * KEY_BYTES;

/** Keys for the frames of one thread: each is used once. */
export class MaskKeys {
  readonly #pool = new Uint8Array(POOL_BYTES);
  #at = POOL_BYTES;

  /** Lent until the next call. */
  next(): Uint8Array {
    if (this.#at === POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#at = 0;
    }
    this.#at += KEY_BYTES;
    return this.#pool.subarray(this.#at - KEY_BYTES, this.#at);
  }
}
