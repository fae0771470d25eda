/**
 * Datagrams of one client on their way to another thread, those of a turn in one message (sized.ts). A message for each would
 * cost several times as much as all the rest.
 */
import { putSized, SIZE_BYTES, sizeAt } from "#transport/quic/sized.ts";
import type { Sealed } from "./outbox.ts";

const FIRST_BYTES = 2 * 1024;
/** With more the next ones go in another message. */
const MOST_BYTES = 128 * 1024;
const NOTHING = new Uint8Array(0);

/** Where packs go. */
export interface PackOutbox {
  /** Calls `seal` when messages are sent. */
  hold(pack: Sealed): void;
}

export class DatagramPack implements Sealed {
  readonly #outbox: PackOutbox;
  readonly #give: (bytes: Uint8Array<ArrayBuffer>) => void;
  /** Null: nothing waits. */
  #memory: Uint8Array<ArrayBuffer> | null = null;
  #used = 0;
  /** Of the next memory: what the last turn needed. */
  #nextBytes = FIRST_BYTES;

  /** `give` makes a message of the bytes, which are its own. */
  constructor(outbox: PackOutbox, give: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#outbox = outbox;
    this.#give = give;
  }

  /** Adds a copy of one datagram, which may come in two pieces. */
  add(payload: Uint8Array, rest: Uint8Array = NOTHING): void {
    const memory = this.#memoryFor(SIZE_BYTES + payload.length + rest.length);
    this.#used = putSized(memory, this.#used, payload, rest);
  }

  #memoryFor(bytes: number): Uint8Array<ArrayBuffer> {
    if (this.#memory !== null && this.#used + bytes <= this.#memory.length) return this.#memory;
    if (this.#memory === null) this.#outbox.hold(this);
    else {
      this.#giveAway(this.#memory);
      this.#nextBytes = Math.min(MOST_BYTES, 2 * this.#nextBytes);
    }
    return (this.#memory = new Uint8Array(Math.max(bytes, this.#nextBytes)));
  }

  #giveAway(memory: Uint8Array<ArrayBuffer>): void {
    this.#give(memory.subarray(0, this.#used));
    this.#used = 0;
  }

  seal(): void {
    const memory = this.#memory;
    if (memory === null) return;
    if (4 * this.#used < memory.length) this.#nextBytes = Math.max(FIRST_BYTES, memory.length >>> 1);
    this.#memory = null;
    this.#giveAway(memory);
  }
}

/** Lends each datagram of a pack to `take`; the memory of the pack is given back. */
export function unpackDatagrams(pack: Uint8Array<ArrayBuffer>, take: (payload: Uint8Array) => void): void {
  for (let at = 0; at < pack.length;) {
    const from = at + SIZE_BYTES;
    const to = from + sizeAt(pack, at);
    take(pack.subarray(from, to));
    at = to;
  }
  pack.buffer.transfer(0); // left to the collector it has the whole heap marked many times a second
}
