/** The bytes of a stream of one direction, which are one command, as they come. */
import { MOST_PACKET_BYTES } from "./wire.ts";

/** The longest authentication fits. */
const LEAST_BYTES = 64;

export class CommandBytes {
  /** In one piece: a peer may send single bytes, and each piece would cost more than a hundred. */
  #memory = Buffer.alloc(0);
  #length = 0;

  /** Of memory that it holds. */
  get heldBytes(): number {
    return this.#memory.length;
  }

  /** It may be an authentication. */
  get isShort(): boolean {
    return this.#length <= LEAST_BYTES;
  }

  /** Copies it. False: no command has so many bytes, and nothing of it is kept. */
  push(piece: Buffer): boolean {
    const length = this.#length + piece.length;
    if (length > MOST_PACKET_BYTES) {
      this.clear();
      return false;
    }
    if (length > this.#memory.length) this.#grow(length);
    piece.copy(this.#memory, this.#length);
    this.#length = length;
    return true;
  }

  #grow(length: number): void {
    const wanted = Math.max(LEAST_BYTES, length, Math.min(2 * this.#memory.length, MOST_PACKET_BYTES));
    const grown = Buffer.allocUnsafeSlow(wanted);
    this.#memory.copy(grown, 0, 0, this.#length);
    this.#memory = grown;
  }

  clear(): void {
    this.#memory = Buffer.alloc(0);
    this.#length = 0;
  }

  get whole(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }
}
