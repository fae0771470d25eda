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

/** What a packet carried. */
export interface SentPacket {
  readonly bytes: number;
  /** Asks for an acknowledgement. */
  readonly isEliciting: boolean;
  /** With ECT(0). */
  readonly isMarked: boolean;
  /** The stream of its first STREAM frame; -1: there is none. */
  readonly stream: number;
  readonly offset: number;
  readonly length: number;
  readonly isLast: boolean;
  /** Null: nothing else that has to arrive. */
  readonly items: readonly SentItem[] | null;
}

const FIRST_SLOTS = 8;
/** So many that are settled: some that were called lost are only late. */
const REMEMBERED = 64;
/** More packets are not sent before some are acknowledged. */
const MOST_SLOTS = 131_072;

/** Of a space that sends no more. */
const NO_FLOATS = new Float64Array(1);
const NO_SHORTS = new Uint16Array(1);
const NO_BYTES = new Uint8Array(1);
const NO_ITEMS = new Map<number, readonly SentItem[]>();

export class SentPackets {
  /** Of the oldest packet that is in flight; those below are settled. */
  first = 0;
  /** Of the next packet. */
  next = 0;
  sentAt = NO_FLOATS;
  bytes = NO_SHORTS;
  state = NO_BYTES;
  // Of the packets, see `SentPacket`.
  eliciting = NO_BYTES;
  stream = NO_FLOATS;
  offset = NO_FLOATS;
  length = NO_SHORTS;
  isLast = NO_BYTES;
  /** What the connection had delivered, and when, as this packet was sent; see rate-sampler.ts. */
  delivered = NO_FLOATS;
  deliveredAt = NO_FLOATS;
  firstSentAt = NO_FLOATS;
  isAppLimited = NO_BYTES;
  /** It went with ECT(0). */
  isMarked = NO_BYTES;
  items = new Map<number, readonly SentItem[]>();
  #slots = 0;

  constructor() {
    this.#allocate(FIRST_SLOTS);
  }

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

  /** Enters the next packet and answers with its slot; one that asks for no acknowledgement is settled at once. */
  add(packet: SentPacket, nowMs: number): number {
    const number = this.next;
    const slot = this.#take();
    this.sentAt[slot] = nowMs;
    this.bytes[slot] = packet.bytes;
    this.eliciting[slot] = packet.isEliciting ? 1 : 0;
    this.isMarked[slot] = packet.isMarked ? 1 : 0;
    this.stream[slot] = packet.stream;
    this.offset[slot] = packet.offset;
    this.length[slot] = packet.length;
    this.isLast[slot] = packet.isLast ? 1 : 0;
    this.state[slot] = packet.isEliciting ? IN_FLIGHT : ACKED;
    if (!packet.isEliciting) this.settle();
    else if (packet.items !== null) this.items.set(number, packet.items);
    return slot;
  }

  /** The slot of the next packet, whose number is taken with it. */
  #take(): number {
    if (this.next - this.first >= this.#slots) this.#grow();
    return this.slotOf(this.next++);
  }

  /** Takes the number of a packet that is not waited for. */
  takeSettled(): void {
    this.state[this.#take()] = ACKED;
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

  /** As `forget`, and no more will be sent: gives the memory of the ring back. */
  release(): number {
    const bytes = this.forget();
    this.#slots = 1;
    this.sentAt = this.stream = this.offset = NO_FLOATS;
    this.delivered = this.deliveredAt = this.firstSentAt = NO_FLOATS;
    this.bytes = this.length = NO_SHORTS;
    this.state = this.eliciting = this.isLast = this.isAppLimited = this.isMarked = NO_BYTES;
    this.items = NO_ITEMS;
    return bytes;
  }

  /** All columns lie in one piece of memory: there are many connections that send little. */
  #allocate(slots: number): void {
    const memory = new ArrayBuffer(slots * (6 * 8 + 2 * 2 + 5));
    const floats = (column: number): Float64Array<ArrayBuffer> =>
      new Float64Array(memory, slots * 8 * column, slots);
    const shorts = (column: number): Uint16Array<ArrayBuffer> =>
      new Uint16Array(memory, slots * (6 * 8 + 2 * column), slots);
    const flags = (column: number): Uint8Array<ArrayBuffer> =>
      new Uint8Array(memory, slots * (6 * 8 + 2 * 2 + column), slots);
    this.#slots = slots;
    [this.sentAt, this.stream, this.offset] = [floats(0), floats(1), floats(2)];
    [this.delivered, this.deliveredAt, this.firstSentAt] = [floats(3), floats(4), floats(5)];
    [this.bytes, this.length] = [shorts(0), shorts(1)];
    [this.state, this.eliciting, this.isLast, this.isAppLimited] = [flags(0), flags(1), flags(2), flags(3)];
    this.isMarked = flags(4);
  }

  #grow(): void {
    const { sentAt, bytes, state, eliciting, stream, offset, length, isLast } = this;
    const { delivered, deliveredAt, firstSentAt, isAppLimited, isMarked } = this;
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
      this.isMarked[to] = byteAt(isMarked, from);
    }
  }
}
