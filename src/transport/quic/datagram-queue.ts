/** Application datagrams that wait to be sent (RFC 9221). Beyond a bound the newest is dropped, as on any network. */
import { MOST_PAYLOAD_BYTES, putSized, SIZE_BYTES, sizeAt } from "./sized.ts";
import { FRAME } from "./wire/frames.ts";
import { varintBytes, type WireWriter } from "./wire/writer.ts";

/** What goes in so long may wait, within bounds: where the window is full for a moment, a fast sender loses none. */
const MOST_MS = 50;
const LEAST_BOUND_BYTES = 512 * 1024;
const MOST_BYTES = 4 * 1024 * 1024;
const FIRST_BYTES = 8 * 1024;

export class DatagramQueue {
  /** See sized.ts; from `#from` to `#end`. */
  #memory = new Uint8Array(0);
  #from = 0;
  #end = 0;

  get hasData(): boolean {
    return this.#from < this.#end;
  }

  /** A copy of one datagram, which may come in two pieces. `rate`: at which they go, bytes a millisecond. */
  push(payload: Uint8Array, rest: Uint8Array, rate: number): void {
    const size = payload.length + rest.length;
    const most = Math.min(MOST_BYTES, Math.max(LEAST_BOUND_BYTES, MOST_MS * rate));
    if (size > MOST_PAYLOAD_BYTES || !this.#makeRoom(SIZE_BYTES + size, most)) return;
    this.#end = putSized(this.#memory, this.#end, payload, rest);
  }

  /** Behind the end, for so many bytes. False: it is full. */
  #makeRoom(bytes: number, most: number): boolean {
    const waiting = this.#end - this.#from;
    if (waiting + bytes > most) return false;
    if (this.#end + bytes <= this.#memory.length) return true;
    if (2 * (waiting + bytes) <= this.#memory.length) this.#memory.copyWithin(0, this.#from, this.#end);
    else this.#enlarge(2 * (waiting + bytes));
    this.#from = 0;
    this.#end = waiting;
    return true;
  }

  #enlarge(bytes: number): void {
    const larger = new Uint8Array(Math.max(FIRST_BYTES, bytes));
    larger.set(this.#memory.subarray(this.#from, this.#end));
    this.#memory = larger;
  }

  /** False: there is none, or the next one does not fit; one that fits into no packet is dropped. */
  writeFrame(out: WireWriter, room: number, isEmptyPacket: boolean): boolean {
    if (!this.hasData) return false;
    const at = this.#from + SIZE_BYTES;
    const size = sizeAt(this.#memory, this.#from);
    const isTooLong = 1 + varintBytes(size) + size > room;
    if (isTooLong && !isEmptyPacket) return false;
    this.#from = at + size;
    if (!isTooLong) {
      out.byte(FRAME.datagramLength);
      out.varint(size);
      out.put(this.#memory.subarray(at, at + size));
    }
    if (!this.hasData) this.#onEmpty();
    return isTooLong ? this.writeFrame(out, room, isEmptyPacket) : true;
  }

  /** Memory that was needed for a burst is given back. */
  #onEmpty(): void {
    if (this.#memory.length > FIRST_BYTES && 4 * this.#end < this.#memory.length)
      this.#memory = new Uint8Array(this.#memory.length >>> 1);
    this.#from = this.#end = 0;
  }
}
