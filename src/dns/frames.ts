/** The two-byte length prefix of DNS over streams (RFC 1035 §4.2.2). A frame has at most 65,535 bytes. */

export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(message.length + 2);
  frame.writeUInt16BE(message.length, 0);
  frame.set(message, 2);
  return frame;
}

/** Cuts a byte stream into messages. Holds one unfinished message at most, so its memory is bounded by the format. */
export class FrameReader {
  readonly #on: (message: Buffer) => void;
  #rest: Buffer = Buffer.alloc(0);
  /** Chunks of an unfinished message are joined once it is whole, not at every arrival. */
  #parts: Uint8Array[] = [];
  #have = 0;

  constructor(on: (message: Buffer) => void) {
    this.#on = on;
  }

  /** True while a message has begun and is not whole. */
  get pending(): boolean {
    return this.#have > 0;
  }

  push(chunk: Uint8Array): void {
    this.#parts.push(chunk);
    this.#have += chunk.length;
    if (this.#have < 2 || (this.#rest.length >= 2 && this.#have < 2 + this.#rest.readUInt16BE(0))) return;
    let bytes = Buffer.concat(this.#parts, this.#have);
    while (bytes.length >= 2) {
      const length = bytes.readUInt16BE(0);
      if (bytes.length < 2 + length) break;
      this.#on(bytes.subarray(2, 2 + length));
      bytes = bytes.subarray(2 + length);
    }
    this.#rest = bytes;
    this.#have = bytes.length;
    this.#parts = bytes.length === 0 ? [] : [bytes];
  }
}
