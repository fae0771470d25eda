/** The bytes of a stream of one direction, which are one command, as they come. */
import { MOST_PACKET_BYTES } from "./wire.ts";

/** Further pieces are joined with those before: a peer may send single bytes, and each piece costs more than a hundred. */
const MOST_PIECES = 64;

export class CommandBytes {
  #pieces: Buffer[] = [];
  #length = 0;

  /** False: no command has so many bytes, and nothing of it is kept. */
  push(piece: Buffer): boolean {
    this.#length += piece.length;
    if (this.#length > MOST_PACKET_BYTES) {
      this.#pieces = [];
      return false;
    }
    this.#pieces.push(piece);
    if (this.#pieces.length === MOST_PIECES) this.#pieces = [Buffer.concat(this.#pieces)];
    return true;
  }

  get whole(): Buffer {
    return Buffer.concat(this.#pieces);
  }
}
