/** The bytes of one stream that the peer sends (RFC 9000 §3.2), in order and within the window. */
import { FINAL_SIZE_ERROR, FLOW_CONTROL_ERROR, QuicFault } from "#transport/quic/fault.ts";
import { Reassembly } from "./reassembly.ts";

export class ReceivePart {
  readonly #pieces = new Reassembly();
  /** What the peer may send. */
  limit: number;
  readonly #window: number;
  /** Behind the last byte that has come. */
  #highest = 0;
  /** Null: the peer has not said it. */
  #finalSize: number | null = null;
  /** What the reader has taken. */
  #consumed = 0;
  isReset = false;

  constructor(window: number) {
    this.limit = window;
    this.#window = window;
  }

  /** Everything has come and was handed on, or will never be. */
  get isComplete(): boolean {
    return this.isReset || this.#finalSize === this.#pieces.next;
  }

  get finalSize(): number | null {
    return this.#finalSize;
  }

  /** Hands on what is in order. Answers how many bytes of the connection's window it took. Throws `QuicFault`. */
  add(offset: number, bytes: Uint8Array, isLast: boolean, on: (bytes: Uint8Array) => void): number {
    const end = offset + bytes.length;
    const fresh = this.#raise(end, isLast ? end : null);
    if (!this.isReset) this.#pieces.add(offset, bytes, on);
    return fresh;
  }

  /** The peer has given it up. Likewise. */
  reset(finalSize: number): number {
    const fresh = this.#raise(finalSize, finalSize);
    this.isReset = true;
    this.#pieces.clear();
    return fresh;
  }

  #raise(end: number, finalSize: number | null): number {
    if (end > this.limit) throw new QuicFault(FLOW_CONTROL_ERROR, "a stream beyond its window");
    const isBeyond = this.#finalSize !== null && end > this.#finalSize;
    const isOther = finalSize !== null && this.#finalSize !== null && finalSize !== this.#finalSize;
    if (isBeyond || isOther || (finalSize !== null && finalSize < this.#highest))
      throw new QuicFault(FINAL_SIZE_ERROR, "a stream that ends elsewhere than it said");
    if (finalSize !== null) this.#finalSize = finalSize;
    const fresh = Math.max(0, end - this.#highest);
    this.#highest += fresh;
    return fresh;
  }

  /** True: the peer is to be told a new limit. */
  consume(bytes: number): boolean {
    this.#consumed += bytes;
    if (this.#finalSize !== null || this.limit - this.#consumed > this.#window / 2) return false;
    this.limit = this.#consumed + this.#window;
    return true;
  }

  /** What has come and was not taken: given up, it counts as taken for the connection. */
  get unconsumed(): number {
    return this.#highest - this.#consumed;
  }
}
