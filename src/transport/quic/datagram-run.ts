/** Datagrams that are built one behind another and go together where the path for them takes runs. */
import type { Path } from "./path.ts";

/** Where datagrams for the peer go; all memory is lent until the call returns. */
export interface SendDatagrams {
  /** To the address of the path. */
  send(datagram: Uint8Array, path: Path): void;
  /** Datagrams of `size` bytes each, one behind another; the last may be shorter. Absent: they go one by one. */
  sendRun?(datagrams: Uint8Array, size: number, path: Path): void;
}

/** With more a queue on the way, or the receiver's, overflows before anybody has had a turn (RFC 9002 §7.7). */
const MOST_IN_RUN = 32;

export class DatagramRun {
  readonly #to: SendDatagrams;
  readonly #most: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #path: Path;
  #from = 0;
  #end = 0;
  /** Of each but the last; 0: there is none. */
  #size = 0;
  #count = 0;
  #isLastShorter = false;
  /** Most are as long as those before: one view serves them all. */
  #view: Uint8Array = new Uint8Array(0);

  constructor(to: SendDatagrams, path: Path) {
    this.#to = to;
    this.#path = path;
    this.#most = to.sendRun === undefined ? 1 : MOST_IN_RUN;
  }

  /** Those that follow are built in this memory, which is lent until `send`, and go there. */
  begin(bytes: Uint8Array, path: Path): void {
    this.#bytes = bytes;
    this.#path = path;
    this.#clear();
  }

  #clear(): void {
    this.#from = this.#end = this.#size = this.#count = 0;
    this.#isLastShorter = false;
  }

  /** Where the next datagram is to be built, with room for so many bytes. */
  room(bytes: number): number {
    if (this.#count === this.#most || this.#isLastShorter || this.#end + bytes > this.#bytes.length)
      this.send();
    return this.#end;
  }

  /** A datagram of so many bytes was built there. */
  add(bytes: number): void {
    if (this.#count > 0 && bytes > this.#size) this.#sendBefore();
    if (this.#count === 0) this.#size = bytes;
    this.#isLastShorter = bytes < this.#size;
    this.#count++;
    this.#end += bytes;
  }

  /** Those before the one that is longer, which begins a run of its own where it stands. */
  #sendBefore(): void {
    const end = this.#end;
    this.#give();
    this.#clear();
    this.#from = this.#end = end;
  }

  /** All that was added. */
  send(): void {
    this.#give();
    this.#clear();
  }

  #give(): void {
    if (this.#count === 0) return;
    const datagrams = this.#viewOf(this.#from, this.#end);
    if (this.#count === 1) this.#to.send(datagrams, this.#path);
    else this.#to.sendRun?.(datagrams, this.#size, this.#path);
  }

  #viewOf(from: number, to: number): Uint8Array {
    const view = this.#view;
    const isSame =
      view.buffer === this.#bytes.buffer && view.byteOffset === from && view.length === to - from;
    return isSame ? view : (this.#view = this.#bytes.subarray(from, to));
  }
}
