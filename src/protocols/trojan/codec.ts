import type { StreamCodec } from "#net/stream/codec-stream.ts";

/**
 * The request in front of the first bytes, in one write: servers look at their first read only. Nothing else changes.
 */
export class RequestCodec implements StreamCodec {
  #request: Buffer | null;

  /** Null: nothing is added in front. */
  constructor(request: Buffer | null) {
    this.#request = request;
  }

  get bare(): boolean {
    return this.#request === null;
  }

  seal(plain: Buffer): Buffer {
    if (this.#request === null) return plain;
    const opening = Buffer.concat([this.#request, plain]);
    this.#request = null;
    return opening;
  }

  sealEnd(): Buffer | null {
    return this.#request;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    emit(wire);
  }

  openEnd(): void {}
}
