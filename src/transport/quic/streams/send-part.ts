/** The bytes of one stream that we send, until they are acknowledged (RFC 9000 §3.1). */
import { itemAt } from "#lib/at.ts";
import { RangeSet } from "#transport/quic/ranges.ts";
import { FRAME, STREAM_FIN, STREAM_LENGTH, STREAM_OFFSET } from "#transport/quic/wire/frames.ts";
import { varintBytes, type WireWriter } from "#transport/quic/wire/writer.ts";

const LARGE_BYTES = 32 * 1024;

/** What a STREAM frame carried. The same object each time. */
export interface SentPiece {
  offset: number;
  length: number;
  isLast: boolean;
  /** Bytes that were sent for the first time, which count against the connection's window. */
  freshBytes: number;
}

export class SendPart {
  readonly #id: number;
  readonly #chunks: Uint8Array[] = [];
  /** Where the first chunk begins. */
  #base = 0;
  /** Of the next byte that was never sent, and the chunk that it is in. */
  #next = 0;
  #nextChunk = 0;
  #nextBase = 0;
  /** Behind the last byte. */
  #end = 0;
  /** What the peer allows. */
  limit: number;
  readonly #lost = new RangeSet();
  readonly #acked = new RangeSet();
  #isEnded = false;
  #isEndSent = false;
  #isEndLost = false;
  #isEndAcked = false;
  /** Null: it was not reset. */
  resetCode: number | null = null;
  isResetAcked = false;
  readonly #piece: SentPiece = { offset: 0, length: 0, isLast: false, freshBytes: 0 };

  constructor(id: number, limit: number) {
    this.#id = id;
    this.limit = limit;
  }

  /** Takes the bytes over, with the memory that they lie in. */
  write(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.resetCode !== null) return;
    this.#chunks.push(bytes);
    this.#end += bytes.length;
  }

  end(): void {
    this.#isEnded = true;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Bytes that are kept. */
  get buffered(): number {
    return this.#end - this.#base;
  }

  /** So many from the first on are with the peer. */
  get ackedBytes(): number {
    return this.#acked.size > 0 && this.#acked.fromAt(0) === 0 ? this.#acked.toAt(0) : 0;
  }

  /** All that there was is with the peer, or it was told that no more comes. */
  get isDone(): boolean {
    return this.resetCode !== null ? this.isResetAcked : this.#isEndAcked && this.buffered === 0;
  }

  /** Behind the last byte that was ever sent: the final size of a stream that is reset. */
  get sentBytes(): number {
    return this.#next;
  }

  /** Is there anything to send, where the connection's window has so much left? */
  hasData(credit: number): boolean {
    if (this.resetCode !== null) return false;
    if (this.#lost.size > 0 || this.#isEndLost) return true;
    if (this.#next < this.#end) return credit > 0 && this.#next < this.limit;
    return this.#isEnded && !this.#isEndSent;
  }

  /** Nothing more is sent or kept. */
  reset(code: number): void {
    this.resetCode = code;
    this.#chunks.length = 0;
    this.#lost.clear();
    this.#base = this.#end;
  }

  /** One STREAM frame within `room`, what was lost first; null: nothing fits. */
  writeFrame(out: WireWriter, room: number, credit: number): SentPiece | null {
    const piece = this.#piece;
    const isLostPiece = this.#lost.size > 0;
    const offset = isLostPiece ? this.#lost.fromAt(0) : this.#next;
    const space = room - 1 - varintBytes(this.#id) - varintBytes(offset) - 2;
    const most = isLostPiece
      ? this.#lost.toAt(0) - offset
      : Math.max(0, Math.min(this.#end, this.limit, offset + credit) - offset);
    const length = Math.min(most, space);
    const isLast = this.#isEnded && offset + length === this.#end;
    if (space < 0 || (length <= 0 && !(isLast && (this.#isEndLost || !this.#isEndSent)))) return null;
    out.byte(FRAME.stream | STREAM_OFFSET | STREAM_LENGTH | (isLast ? STREAM_FIN : 0));
    out.varint(this.#id);
    out.varint(offset);
    out.varint2(length);
    if (length > 0) this.#copy(out, offset, length);
    piece.offset = offset;
    piece.length = length;
    piece.isLast = isLast;
    piece.freshBytes = isLostPiece ? 0 : length;
    if (isLostPiece) this.#lost.remove(offset, offset + length);
    else this.#next += length;
    if (isLast) {
      this.#isEndSent = true;
      this.#isEndLost = false;
    }
    return piece;
  }

  #copy(out: WireWriter, offset: number, length: number): void {
    const isNext = offset === this.#next;
    let index = isNext ? this.#nextChunk : 0;
    let base = isNext ? this.#nextBase : this.#base;
    let at = offset;
    const end = offset + length;
    while (at < end) {
      const chunk = itemAt(this.#chunks, index);
      const from = at - base;
      if (from < chunk.length) {
        const size = Math.min(end - at, chunk.length - from);
        out.put(from === 0 && size === chunk.length ? chunk : chunk.subarray(from, from + size));
        at += size;
      }
      if (at < base + chunk.length) break;
      base += chunk.length;
      index++;
    }
    if (!isNext) return;
    this.#nextChunk = index;
    this.#nextBase = base;
  }

  onAcked(offset: number, length: number, isLast: boolean): void {
    if (isLast) {
      this.#isEndAcked = true;
      this.#isEndLost = false;
    }
    if (length === 0 || this.resetCode !== null) return;
    this.#acked.add(offset, offset + length);
    if (this.#lost.size > 0) this.#lost.remove(offset, offset + length);
    if (this.#acked.fromAt(0) > this.#base) return;
    const acked = this.#acked.toAt(0);
    let gone = 0;
    for (; gone < this.#chunks.length; gone++) {
      const chunk = itemAt(this.#chunks, gone);
      if (this.#base + chunk.length > acked) break;
      this.#base += chunk.length;
      release(chunk);
    }
    if (gone === 0) return;
    this.#chunks.splice(0, gone);
    this.#nextChunk -= gone;
  }

  onLost(offset: number, length: number, isLast: boolean): void {
    if (this.resetCode !== null) return;
    if (isLast && !this.#isEndAcked) this.#isEndLost = true;
    if (length === 0) return;
    this.#lost.add(offset, offset + length);
    for (let place = 0; place < this.#acked.size && this.#acked.fromAt(place) < offset + length; place++)
      this.#lost.remove(this.#acked.fromAt(place), this.#acked.toAt(place));
  }
}

/**
 * Gives the memory of a large chunk back at once. Left to the collector, it would make that mark the whole heap many times a
 * second, for memory outside the heap counts there.
 */
function release({ buffer, length }: Uint8Array): void {
  if (length >= LARGE_BYTES && buffer.byteLength === length && buffer instanceof ArrayBuffer)
    buffer.transfer(0);
}
