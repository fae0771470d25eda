import { ROOM_BYTES } from "#transport/mux/session.ts";
import { ByteStore } from "./byte-store.ts";

/** Of streams that have nothing waiting: memory that is kept for others. */
const MOST_SPARE = 4;

/** What has come for the streams of one session, and waits for their readers. */
export class StreamMemory {
  heldBytes = 0;
  /** Nothing more is to be read until there is room again. */
  isFull = false;
  readonly #mostBytes: number;
  readonly #spare: ByteStore[] = [];

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** It has grown (or shrunk, negative) by so many bytes. True: it is full no more. */
  count(bytes: number): boolean {
    this.heldBytes += bytes;
    const roomBytes = this.#mostBytes - this.heldBytes;
    if (roomBytes < 0) this.isFull = true;
    if (!this.isFull || roomBytes < ROOM_BYTES) return false;
    this.isFull = false;
    return true;
  }

  /** An empty one. */
  takeStore(): ByteStore {
    return this.#spare.pop() ?? new ByteStore();
  }

  /** It is empty. */
  giveStore(store: ByteStore): void {
    if (this.#spare.length < MOST_SPARE) this.#spare.push(store);
  }
}
