import type { UnpaddingState } from "#core/wire-state.ts";
import { ProtocolError } from "#core/errors.ts";
import { EINTR } from "#platform/linux/relay-calls.ts";
import { type UnpadState, Unpadder } from "#protocols/shared/vision-padding.ts";
import { BROKEN } from "./sealed-reader.ts";
import type { Wire, WireIo } from "./wire.ts";

const NOTHING = new Uint8Array(0);

/** Takes the blocks of the peer apart, as long as it pads. */
export class VisionReader {
  readonly #unpadder: Unpadder | null;
  readonly #see: (content: Buffer) => void;
  /** Content beyond what was asked for. */
  #held: Uint8Array = NOTHING;
  #filled = 0;
  #room = 0;
  #target: Uint8Array = NOTHING;
  readonly #emit = (content: Buffer): void => {
    this.#see(content);
    this.#take(content);
  };

  /** `reading` null: the peer pads no more. `see` is shown what is in the blocks. */
  constructor(id: Buffer, reading: UnpaddingState | null, see: (content: Buffer) => void) {
    this.#unpadder = reading === null ? null : new Unpadder(id, reading);
    this.#see = see;
  }

  get state(): UnpadState {
    return this.#unpadder?.state ?? "plain";
  }

  /** Content that goes in front of what is read next. */
  get heldBytes(): number {
    return this.#held.length;
  }

  /** Comes behind all that is held. */
  hold(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#held = Buffer.concat([this.#held, bytes]);
  }

  /** What was read of the start of the thread's buffer goes in front of what is held. */
  putBack({ calls }: WireIo, bytes: number): void {
    this.#held = Buffer.concat([calls.buffer.subarray(0, bytes), this.#held]);
  }

  /** As `Wire.read`, of what is held. */
  deliver({ calls }: WireIo, size: number): number {
    const bytes = Math.min(size, this.#held.length);
    calls.buffer.set(this.#held.subarray(0, bytes));
    this.#held = this.#held.subarray(bytes);
    return bytes;
  }

  /**
   * As `Wire.read`, while the state is `padded`: asks the wire below for `wanted` bytes of blocks. An end within padding is
   * an end.
   */
  unpad(io: WireIo, below: Wire, size: number, wanted: number): number {
    const bytes = below.read(io, wanted);
    if (bytes <= 0 || this.#unpadder === null) return bytes;
    const { buffer } = io.calls;
    this.#target = buffer;
    [this.#filled, this.#room] = [0, size];
    try {
      const behind = this.#unpadder.take(Buffer.from(buffer.buffer, buffer.byteOffset, bytes), this.#emit);
      if (behind !== null) this.#take(behind);
    } catch (error) {
      if (error instanceof ProtocolError) return BROKEN;
      throw error;
    }
    return this.#filled > 0 ? this.#filled : EINTR;
  }

  /** To the start of the thread's buffer, over the blocks that it was in. */
  #take(content: Uint8Array): void {
    const fitting = content.subarray(0, this.#room - this.#filled);
    const beyond = content.slice(fitting.length); // before it is written over
    this.#target.set(fitting, this.#filled);
    this.#filled += fitting.length;
    this.hold(beyond);
  }
}
