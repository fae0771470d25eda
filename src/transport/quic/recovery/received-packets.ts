/** Which packets of one number space have come, and when that is to be said (RFC 9000 §13.2). */
import type { WireWriter } from "#transport/quic/wire/writer.ts";
import { varintBytes } from "#transport/quic/wire/writer.ts";
import { FRAME } from "#transport/quic/wire/frames.ts";
import { CE, EcnCounts } from "./ecn-counts.ts";
import { RangeSet } from "#transport/quic/ranges.ts";

/** Older ranges are forgotten: what is in them counts as received. */
const MOST_RANGES = 32;
const MAX_ACK_DELAY_MS = 25;
/** Our acknowledgement delay is said in units of 8 µs. */
const DELAY_UNITS_PER_MS = 125;
/** Of its largest numbers: type, largest, delay, count and first range. */
const HEAD_BYTES = 1 + 8 + 8 + 1 + 8;

export class ReceivedPackets {
  readonly #ranges = new RangeSet();
  /** Below it everything counts as received. */
  #floor = 0;
  largest = -1;
  #largestAtMs = 0;
  /** Packets that ask for an acknowledgement and have none. */
  #unsaid = 0;
  #dueAtMs = Infinity;
  readonly #marks = new EcnCounts();

  /** Has it come before, or may it have? */
  isDuplicate(number: number): boolean {
    return number < this.#floor || this.#ranges.has(number);
  }

  /** `isUrgent`: it is to be acknowledged at once, as is one that has met congestion; `ecn`: as of `Datagram`. */
  add(number: number, isEliciting: boolean, isUrgent: boolean, nowMs: number, ecn = 0): void {
    this.#marks.add(ecn);
    this.#ranges.add(number, number + 1);
    if (this.#ranges.size > MOST_RANGES) {
      this.#floor = this.#ranges.toAt(0);
      this.#ranges.dropLowest();
    }
    const isNext = number === this.largest + 1;
    if (number > this.largest) {
      this.largest = number;
      this.#largestAtMs = nowMs;
    }
    if (!isEliciting) return;
    this.#unsaid++;
    const isSecond = this.#unsaid >= 2;
    this.#dueAtMs =
      isUrgent || !isNext || isSecond || ecn === CE
        ? nowMs
        : Math.min(this.#dueAtMs, nowMs + MAX_ACK_DELAY_MS);
  }

  /** When an acknowledgement must go; Infinity: none is asked for. */
  get dueAtMs(): number {
    return this.#dueAtMs;
  }

  /** There is one that could go along. */
  get isWanted(): boolean {
    return this.#unsaid > 0;
  }

  /** Writes an ACK frame of at most `room` bytes; nothing where that is too little. */
  write(out: WireWriter, room: number, nowMs: number): void {
    const ranges = this.#ranges;
    const headBytes = HEAD_BYTES + this.#marks.bytes;
    if (ranges.size === 0 || room < headBytes) return;
    out.byte(this.#marks.isEmpty ? FRAME.ack : FRAME.ackEcn);
    out.varint(this.largest);
    out.varint(Math.round(Math.max(0, nowMs - this.#largestAtMs) * DELAY_UNITS_PER_MS));
    const top = ranges.size - 1;
    const end = out.at + room - headBytes;
    let count = 0;
    let bytes = 0;
    for (let place = top - 1; place >= 0; place--) {
      bytes += varintBytes(this.#gap(place)) + varintBytes(ranges.toAt(place) - ranges.fromAt(place) - 1);
      if (out.at + bytes > end) break;
      count++;
    }
    out.varint(count);
    out.varint(ranges.toAt(top) - ranges.fromAt(top) - 1);
    for (let place = top - 1; place >= top - count; place--) {
      out.varint(this.#gap(place));
      out.varint(ranges.toAt(place) - ranges.fromAt(place) - 1);
    }
    if (!this.#marks.isEmpty) this.#marks.write(out);
    this.#unsaid = 0;
    this.#dueAtMs = Infinity;
  }

  /** Between this range and the one above it, as the frame has it. */
  #gap(place: number): number {
    return this.#ranges.fromAt(place + 1) - this.#ranges.toAt(place) - 1;
  }
}
