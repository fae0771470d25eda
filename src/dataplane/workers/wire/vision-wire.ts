import type { PaddingState, VisionLayer } from "#core/handover.ts";
import { ProtocolError } from "#core/errors.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { encodeBlock, END, MAX_CONTENT_BYTES, Unpadder } from "#protocols/shared/vision-padding.ts";
import { BROKEN } from "./sealed-reader.ts";
import type { Wire, WireIo } from "./wire.ts";
import { WireLayer } from "./wire-layer.ts";

const NOTHING = new Uint8Array(0);

/**
 * Vision whose inside is no TLS, inside TLS that both directions stay in: our padding ends with the next block, and the
 * peer's when it says so.
 * One that would leave TLS behind after all breaks the rules: neither side has seen TLS inside.
 */
export class VisionWire extends WireLayer implements Wire {
  readonly #id: Buffer;
  /** Null: the peer pads no more. */
  #unpadder: Unpadder | null;
  /** Null: our padding has ended. */
  #writing: PaddingState | null;
  /** Content beyond what was asked for, while there is padding. */
  #held: Uint8Array = NOTHING;
  #filled = 0;
  #room = 0;
  #target: Uint8Array = NOTHING;
  readonly #emit = (content: Buffer): void => this.#take(content);

  constructor(inner: Wire, { id, reading, writing }: VisionLayer) {
    super(inner);
    this.#id = Buffer.from(id);
    this.#unpadder = reading === null ? null : new Unpadder(this.#id, reading);
    this.#writing = writing;
  }

  override get readable(): boolean {
    return this.#held.length > 0 || this.inner.readable;
  }

  override set readable(readable: boolean) {
    this.inner.readable = readable;
  }

  get bareSource(): number {
    return this.#unpadder === null && this.#held.length === 0 ? this.inner.bareSource : -1;
  }

  get bareTarget(): number {
    return this.#writing === null ? this.inner.bareTarget : -1;
  }

  read(io: WireIo, size: number): number {
    if (this.#held.length > 0) return this.#deliver(io, size);
    return this.#unpadder === null ? this.inner.read(io, size) : this.#unpad(io, this.#unpadder, size);
  }

  /** To know, it has to unpad. */
  available(io: WireIo): number {
    if (this.#held.length === 0 && this.#unpadder !== null) {
      const bytes = this.#unpad(io, this.#unpadder, MAX_CONTENT_BYTES);
      if (bytes <= 0) return bytes;
      this.#held = Buffer.concat([io.calls.buffer.subarray(0, bytes), this.#held]);
    }
    return this.#held.length > 0 ? this.#held.length : this.inner.available(io);
  }

  #deliver({ calls }: WireIo, size: number): number {
    const bytes = Math.min(size, this.#held.length);
    calls.buffer.set(this.#held.subarray(0, bytes));
    this.#held = this.#held.subarray(bytes);
    return bytes;
  }

  /** Content to the start of the thread's buffer, over the blocks that it was in. An end within padding is an end. */
  #unpad(io: WireIo, unpadder: Unpadder, size: number): number {
    const bytes = this.inner.read(io, size);
    if (bytes <= 0) return bytes;
    const { buffer } = io.calls;
    this.#target = buffer;
    [this.#filled, this.#room] = [0, size];
    try {
      const behind = unpadder.take(Buffer.from(buffer.buffer, buffer.byteOffset, bytes), this.#emit);
      if (behind !== null) this.#take(behind);
    } catch (error) {
      if (error instanceof ProtocolError) return BROKEN;
      throw error;
    }
    if (unpadder.state === "direct") return BROKEN;
    if (unpadder.state === "plain") this.#unpadder = null;
    return this.#filled > 0 ? this.#filled : EINTR;
  }

  #take(content: Uint8Array): void {
    const fitting = content.subarray(0, this.#room - this.#filled);
    const beyond = content.slice(fitting.length); // before it is written over
    this.#target.set(fitting, this.#filled);
    this.#filled += fitting.length;
    if (beyond.length > 0) this.#held = Buffer.concat([this.#held, beyond]);
  }

  write(io: WireIo, size: number): number {
    return this.#writing === null ? this.inner.write(io, size) : this.#writeLast(io, this.#writing, size);
  }

  /** The block that ends our padding, in a record of its own as peers expect it; the rest waits for the next write. */
  #writeLast(io: WireIo, { opening, isFirst }: PaddingState, size: number): number {
    const { buffer } = io.calls;
    const content = buffer.slice(0, Math.min(size, MAX_CONTENT_BYTES));
    const rest = buffer.slice(content.length, size);
    const block = encodeBlock(isFirst ? this.#id : null, END, content, content.length === 0);
    buffer.set(opening);
    buffer.set(block, opening.length);
    const sent = this.inner.write(io, opening.length + block.length);
    // A wire of TLS takes all that it is given, or fails.
    if (sent < opening.length + block.length) return sent < 0 ? sent : BROKEN;
    this.#writing = null;
    buffer.set(rest, content.length);
    return content.length;
  }

  /** Where nothing was said, the block that says the end has the id. */
  endWriting(io: WireIo): number {
    if (this.#writing !== null && this.#writing.isFirst) {
      const said = this.#writeLast(io, this.#writing, 0);
      if (said < 0) return said;
      if (this.pending) return EAGAIN;
    }
    return this.inner.endWriting(io);
  }
}
