import type { Wire, WireIo } from "./wire.ts";
import { WireLayer } from "./wire-layer.ts";

/** A wire of whose payload some was read before it was made: that comes first. */
export class ReadAheadWire extends WireLayer implements Wire {
  /** Null: it was read. */
  #payload: Uint8Array | null;

  constructor(inner: Wire, payload: Uint8Array) {
    super(inner);
    this.#payload = payload.length === 0 ? null : payload;
  }

  override get readable(): boolean {
    return this.#payload !== null || this.inner.readable;
  }

  override set readable(readable: boolean) {
    this.inner.readable = readable;
  }

  get bareSource(): number {
    return this.#payload === null ? this.inner.bareSource : -1;
  }

  get bareTarget(): number {
    return this.inner.bareTarget;
  }

  read(io: WireIo, size: number): number {
    const payload = this.#payload;
    if (payload === null) return this.inner.read(io, size);
    const bytes = Math.min(size, payload.length);
    io.calls.buffer.set(payload.subarray(0, bytes));
    this.#payload = bytes < payload.length ? payload.subarray(bytes) : null;
    return bytes;
  }

  available(io: WireIo): number {
    return this.#payload === null ? this.inner.available(io) : this.#payload.length;
  }

  write(io: WireIo, size: number): number {
    return this.inner.write(io, size);
  }

  endWriting(io: WireIo): number {
    return this.inner.endWriting(io);
  }
}
