import type { StreamCodec } from "#net/stream/codec-stream.ts";

/** Bytes as they are. An HTTP/2 stream behind a `CodecStream` ends as other streams do. */
export class PlainCodec implements StreamCodec {
  seal(plain: Buffer): Buffer {
    return plain;
  }

  sealEnd(): null {
    return null;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    emit(wire);
  }

  openEnd(): void {}
}
