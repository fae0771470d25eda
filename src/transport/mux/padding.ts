import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { paddingSize } from "./preface.ts";
import { byteAt } from "#lib/at.ts";

/** So many writes of each direction are padded; what follows is bare. */
const PADDED_WRITES = 16;
const MAX_PIECE = 0xffff;

/** Padded write: DATA SIZE(2) PADDING SIZE(2) DATA PADDING. Nothing is held: both parts pass as they come. */
export class PaddingCodec implements StreamCodec {
  #opening: Buffer;
  #sealed = 0;
  #opened = 0;
  readonly #head = Buffer.alloc(4);
  #headSize = 0;
  #dataLeft = 0;
  #paddingLeft = 0;

  /** `opening` goes out before everything, unpadded. */
  constructor(opening: Buffer = Buffer.alloc(0)) {
    this.#opening = opening;
  }

  seal(plain: Buffer): Buffer {
    const parts: Buffer[] = [this.#opening];
    this.#opening = Buffer.alloc(0);
    let at = 0;
    while (at < plain.length && this.#sealed < PADDED_WRITES) {
      parts.push(padded(plain.subarray(at, at + MAX_PIECE)));
      this.#sealed++;
      at += MAX_PIECE;
    }
    if (at === 0 && parts[0]?.length === 0) return plain;
    parts.push(plain.subarray(at));
    return Buffer.concat(parts);
  }

  sealEnd(): Buffer | null {
    return this.#opening.length === 0 ? null : this.seal(Buffer.alloc(0));
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    let at = 0;
    while (at < wire.length) {
      if (this.#dataLeft > 0) {
        const end = Math.min(wire.length, at + this.#dataLeft);
        emit(wire.subarray(at, end));
        this.#dataLeft -= end - at;
        at = end;
      } else if (this.#paddingLeft > 0) {
        const skipped = Math.min(wire.length - at, this.#paddingLeft);
        this.#paddingLeft -= skipped;
        at += skipped;
      } else if (this.#opened === PADDED_WRITES) {
        emit(at === 0 ? wire : wire.subarray(at));
        return;
      } else this.#takeHead(byteAt(wire, at++));
    }
  }

  openEnd(): void {
    // Peers close in the middle of padding; a torn frame is reported by the session inside.
  }

  #takeHead(byte: number): void {
    this.#head[this.#headSize++] = byte;
    if (this.#headSize < 4) return;
    this.#headSize = 0;
    this.#opened++;
    this.#dataLeft = this.#head.readUInt16BE(0);
    this.#paddingLeft = this.#head.readUInt16BE(2);
  }
}

function padded(data: Buffer): Buffer {
  const size = paddingSize();
  const out = Buffer.alloc(4 + data.length + size);
  out.writeUInt16BE(data.length, 0);
  out.writeUInt16BE(size, 2);
  data.copy(out, 4);
  return out;
}
