/** Stream bytes that one ACK frame acknowledges, put together: those of packets sent one after the other are told as one range. */

/** Where stream bytes that were acknowledged or lost are told. */
export interface StreamOutcomes {
  onAcked(id: number, offset: number, length: number, isLast: boolean): void;
  onLost(id: number, offset: number, length: number, isLast: boolean): void;
}

export class AckedRanges {
  readonly #streams: StreamOutcomes;
  /** Of the range that still may grow; -1: there is none. */
  #stream = -1;
  #from = 0;
  #to = 0;
  #isLast = false;

  constructor(streams: StreamOutcomes) {
    this.#streams = streams;
  }

  add(stream: number, offset: number, length: number, isLast: boolean): void {
    if (stream === this.#stream && offset === this.#to && !this.#isLast) {
      this.#to += length;
      this.#isLast = isLast;
      return;
    }
    this.tell();
    this.#stream = stream;
    this.#from = offset;
    this.#to = offset + length;
    this.#isLast = isLast;
  }

  /** No more follows. */
  tell(): void {
    const stream = this.#stream;
    if (stream < 0) return;
    this.#stream = -1;
    this.#streams.onAcked(stream, this.#from, this.#to - this.#from, this.#isLast);
  }
}
