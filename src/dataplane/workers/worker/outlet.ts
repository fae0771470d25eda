import { EAGAIN, EINTR, type RelayCalls } from "#platform/linux/relay-calls.ts";

const NOTHING = Buffer.alloc(0);

/** What is said to a socket, and kept as far as that does not take it yet. */
export class Outlet {
  readonly #calls: RelayCalls;
  readonly #descriptor: () => number;
  #waiting: Buffer = NOTHING;

  constructor(calls: RelayCalls, descriptor: () => number) {
    this.#calls = calls;
    this.#descriptor = descriptor;
  }

  /** What the socket has not taken. */
  get waiting(): Buffer {
    return this.#waiting;
  }

  say(bytes: Buffer): void {
    this.#waiting = this.#waiting.length === 0 ? bytes : Buffer.concat([this.#waiting, bytes]);
    this.flush();
  }

  /** Whatever is wrong with the socket, reading tells; it takes nothing any more. */
  flush(): void {
    while (this.#waiting.length > 0) {
      const { buffer } = this.#calls;
      const piece = this.#waiting.subarray(0, buffer.length);
      buffer.set(piece);
      const sent = this.#calls.send(this.#descriptor(), piece.length);
      if (sent < 0 && sent !== EAGAIN && sent !== EINTR) this.#waiting = NOTHING;
      if (sent <= 0) return;
      this.#waiting = this.#waiting.subarray(sent);
    }
  }
}
