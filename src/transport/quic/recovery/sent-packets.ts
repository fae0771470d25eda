/** The packets of one number space that were sent: columns of a ring, indexed by the packet number. */
import { byteAt, float64At } from "#lib/at.ts";

export const IN_FLIGHT = 1;
export const ACKED = 2;
export const LOST = 3;

/** What a packet carried besides stream bytes, and has to be said again when it is lost. */
export interface SentItem {
  onAcked(): void;
  onLost(): void;
}

const FIRST_SLOTS = 64;
/** So many that are settled: some that were called lost are only late. */
const REMEMBERED = 64;
/** More packets are not sent before some are acknowledged. */
const MOST_SLOTS = 131_072;

export class SentPackets {
  /** Of the oldest packet that is in flight; those below are settled. */
  first = 0;
  /** Of the next packet. */
  next = 0;
  sentAt = new Float64Array(FIRST_SLOTS);
  bytes = new Uint16Array(FIRST_SLOTS);
  state = new Uint8Array(FIRST_SLOTS);
  /** Asks for an acknowledgement. */
  eliciting = new Uint8Array(FIRST_SLOTS);
  /** The stream of its first STREAM frame; -1: there is none. */
  stream = new Float64Array(FIRST_SLOTS);
  offset = new Float64Array(FIRST_SLOTS);
  length = new Uint16Array(FIRST_SLOTS);
  isLast = new Uint8Array(FIRST_SLOTS);
  /** What the connection had delivered, and when, as this packet was sent; see rate-sampler.ts. */
  delivered = new Float64Array(FIRST_SLOTS);
  deliveredAt = new Float64Array(FIRST_SLOTS);
  firstSentAt = new Float64Array(FIRST_SLOTS);
  isAppLimited = new Uint8Array(FIRST_SLOTS);
  readonly items = new Map<number, readonly SentItem[]>();
  #slots = FIRST_SLOTS;

  get isFull(): boolean {
    return this.next - this.first >= MOST_SLOTS;
  }

  /** The oldest packet whose state is remembered, some time after it was settled. */
  get oldest(): number {
    return Math.max(0, this.first - REMEMBERED, this.next - this.#slots);
  }

  slotOf(number: number): number {
    return number & (this.#slots - 1);
  }

  /** The slot of the next packet, whose number is taken with it. */
  take(): number {
    if (this.next - this.first >= this.#slots) this.#grow();
    return this.slotOf(this.next++);
  }

  /** Takes the number of a packet that is not waited for. */
  takeSettled(): void {
    this.state[this.take()] = ACKED;
    this.settle();
  }

  /** Moves `first` over what is settled. */
  settle(): void {
    while (this.first < this.next && byteAt(this.state, this.slotOf(this.first)) !== IN_FLIGHT) this.first++;
  }

  /** Takes all out of flight; answers with their bytes. */
  forget(): number {
    let bytes = 0;
    for (let number = this.first; number < this.next; number++) {
      const slot = this.slotOf(number);
      if (byteAt(this.state, slot) === IN_FLIGHT) bytes += this.bytes[slot] ?? 0;
    }
    this.state.fill(ACKED);
    this.items.clear();
    this.first = this.next;
    return bytes;
  }

  #allocate(slots: number): void {
    this.#slots = slots;
    this.sentAt = new Float64Array(slots);
    this.bytes = new Uint16Array(slots);
    this.state = new Uint8Array(slots);
    this.eliciting = new Uint8Array(slots);
    this.stream = new Float64Array(slots);
    this.offset = new Float64Array(slots);
    this.length = new Uint16Array(slots);
    this.isLast = new Uint8Array(slots);
    this.delivered = new Float64Array(slots);
    this.deliveredAt = new Float64Array(slots);
    this.firstSentAt = new Float64Array(slots);
    this.isAppLimited = new Uint8Array(slots);
  }

  #grow(): void {
    const { sentAt, bytes, state, eliciting, stream, offset, length, isLast } = this;
    const { delivered, deliveredAt, firstSentAt, isAppLimited } = this;
    const mask = this.#slots - 1;
    this.#allocate(this.#slots * 2);
    for (let number = Math.max(0, this.next - mask - 1); number < this.next; number++) {
      const [from, to] = [number & mask, this.slotOf(number)];
      this.sentAt[to] = float64At(sentAt, from);
      this.bytes[to] = bytes[from] ?? 0;
      this.state[to] = byteAt(state, from);
      this.eliciting[to] = byteAt(eliciting, from);
      this.stream[to] = float64At(stream, from);
      this.offset[to] = float64At(offset, from);
      this.length[to] = length[from] ?? 0;
      this.isLast[to] = byteAt(isLast, from);
      this.delivered[to] = float64At(delivered, from);
      this.deliveredAt[to] = float64At(deliveredAt, from);
      this.firstSentAt[to] = float64At(firstSentAt, from);
      this.isAppLimited[to] = byteAt(isAppLimited, from);
    }
  }
}
