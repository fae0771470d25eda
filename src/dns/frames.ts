/** The two-byte length prefix of DNS over streams (RFC 1035 §4.2.2). A frame has at most 65,535 bytes. */
import { ByteQueue } from "#lib/byte-queue.ts";

export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(message.length + 2);
  frame.writeUInt16BE(message.length, 0);
  frame.set(message, 2);
  return frame;
}

/** Of an unfinished message. */
export const MOST_PIECES = 64;

/**
 * Cuts a byte stream into messages. It holds one unfinished message at most, and behind it what came after its owner was
 * full; the owner stops reading then, so that is one chunk.
 */
export class FrameReader {
  readonly #on: (message: Buffer) => void;
  readonly #isFull: () => boolean;
  readonly #bytes = new ByteQueue();

  constructor(on: (message: Buffer) => void, isFull: () => boolean = () => false) {
    this.#on = on;
    this.#isFull = isFull;
  }

  push(chunk: Buffer): void {
    this.#bytes.push(chunk);
    this.drain();
    this.#bytes.joinBeyond(MOST_PIECES);
  }

  /** Hands over what is whole, until the owner is full. */
  drain(): void {
    while (!this.#isFull()) {
      const prefix = this.#bytes.peek(2);
      const frame = prefix === null ? null : this.#bytes.take(2 + prefix.readUInt16BE(0));
      if (frame === null) return;
      this.#on(frame.subarray(2));
    }
  }
}
