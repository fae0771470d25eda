import { type Fragments, FragmentRoom } from "./fragment-room.ts";

/** Puts a datagram together from its fragments, which come in any order; only those of the newest one are kept. */
export class FragmentJoiner implements Fragments {
  readonly #mostBytes: number;
  readonly #room: FragmentRoom;
  #packet = -1;
  #pieces: (Uint8Array | null)[] = [];
  #missing = 0;
  #bytes = 0;

  /** A datagram of more bytes is dropped. `room`: of all flows of a connection. */
  constructor(mostBytes: number, room = new FragmentRoom()) {
    this.#mostBytes = mostBytes;
    this.#room = room;
  }

  /** Keeps a copy of `data`. `fragment` is below `fragments`. Null: some are still missing, or it is too long. */
  add(packet: number, fragment: number, fragments: number, data: Uint8Array): Uint8Array | null {
    if (packet !== this.#packet || fragments !== this.#pieces.length) this.#begin(packet, fragments);
    if (this.#missing === 0 || this.#pieces[fragment] !== null) return null;
    this.#bytes += data.length;
    if (this.#bytes > this.#mostBytes) return this.#begin(-1, 0);
    this.#pieces[fragment] = new Uint8Array(data);
    this.#missing--;
    this.#room.take(this, data.length);
    if (this.#missing > 0 || this.#pieces.length === 0) return null;
    const whole = Buffer.concat(this.#pieces.filter((piece) => piece !== null));
    this.#begin(-1, 0);
    return whole;
  }

  /** What has come of a datagram is needed no more, or there is no room for it. */
  drop(): void {
    this.#begin(-1, 0);
  }

  #begin(packet: number, fragments: number): null {
    this.#room.leave(this);
    this.#packet = packet;
    this.#pieces = Array.from({ length: fragments }, () => null);
    this.#missing = fragments;
    this.#bytes = 0;
    return null;
  }
}
