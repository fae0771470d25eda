import { FAULT, HANGUP, PEER_ENDED, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import { CLIENT, UPLOAD, type Conversation, type Side, type Way } from "./conversation.ts";
import { FAILED, MORE, OVER, PlainHalf, WAITS, type Io, type Outcome } from "./plain-half.ts";

/** Two kernel sockets without TLS. */
export class PlainConversation implements Conversation {
  queued = false;
  readonly #up: PlainHalf;
  readonly #down: PlainHalf;
  /** A socket has failed: what it still holds is delivered, then both are reset. */
  #broken = false;
  /** The side whose news came last is read from first. */
  #first: PlainHalf;

  /** `slot` is its place in the table of counts. */
  constructor(client: number, remote: number, slot: number) {
    this.#up = new PlainHalf(client, remote, slot * 2);
    this.#down = new PlainHalf(remote, client, slot * 2 + 1);
    this.#first = this.#up;
  }

  get halfClosed(): boolean {
    return this.#up.ended || this.#down.ended;
  }

  notice(side: Side, events: number): void {
    const [reading, writing] = side === CLIENT ? [this.#up, this.#down] : [this.#down, this.#up];
    this.#first = reading;
    if ((events & (READABLE | PEER_ENDED | HANGUP | FAULT)) !== 0) reading.readable = true;
    if ((events & (PEER_ENDED | HANGUP | FAULT)) !== 0) reading.hungUp = true;
    if ((events & (WRITABLE | HANGUP | FAULT)) !== 0) writing.writable = true;
    if ((events & FAULT) !== 0) this.#broken = true;
  }

  limit(limited: boolean): void {
    this.#up.limit(limited);
    this.#down.limit(limited);
  }

  grant(way: Way, bytes: number): void {
    (way === UPLOAD ? this.#up : this.#down).grant(bytes);
  }

  run(io: Io): Outcome {
    const first = this.#first;
    const second = first === this.#up ? this.#down : this.#up;
    const one = first.run(io);
    if (one === FAILED) return this.#fail(io, second);
    const other = second.run(io);
    if (other === FAILED) return this.#fail(io, first);
    if (one === MORE || other === MORE) return MORE;
    if (this.#broken) return FAILED;
    return one === OVER && other === OVER ? OVER : WAITS;
  }

  /** The socket that could not be written to may still hold what its peer sent before it went. */
  #fail(io: Io, last: PlainHalf): Outcome {
    last.readable = last.hungUp = true;
    last.run(io);
    return FAILED;
  }

  drop(io: Io): void {
    this.#up.drop(io);
    this.#down.drop(io);
  }
}
