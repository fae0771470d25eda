import { FAULT, WRITABLE } from "#platform/linux/relay-calls.ts";
import { BACK, CLIENT, FAILED, MORE, OVER, UPLOAD, WAITS } from "./conversation.ts";
import type { Conversation, Io, Outcome, Side, Way } from "./conversation.ts";
import { Half } from "./half.ts";
import type { Port } from "./port.ts";

/** Two ports, of whatever kinds. */
export class PortConversation implements Conversation {
  queued = false;
  readonly #client: Port;
  readonly #remote: Port;
  readonly #up: Half;
  readonly #down: Half;
  /** A socket has failed: what it still holds is delivered, then both are reset. */
  #broken = false;
  /** The side whose news came last is read from first. */
  #first: Half;

  /** `slot` is its place in the table of counts. */
  constructor(client: Port, remote: Port, slot: number) {
    this.#client = client;
    this.#remote = remote;
    this.#up = new Half(client, remote, slot * 2);
    this.#down = new Half(remote, client, slot * 2 + 1);
    this.#first = this.#up;
  }

  get halfClosed(): boolean {
    return this.#up.ended || this.#down.ended;
  }

  notice(side: Side, events: number): boolean {
    const port = side === CLIENT ? this.#client : this.#remote;
    // Such as the acknowledgement of an end.
    if (events === WRITABLE && port.writable && !port.readable) return false;
    this.#first = side === CLIENT ? this.#up : this.#down;
    port.notice(events);
    if ((events & FAULT) !== 0) this.#broken = true;
    return true;
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
    const one = first.run(io, second.over);
    if (one === FAILED) return this.#fail(io, second);
    if (one === BACK) return this.#goBack();
    const other = second.run(io, first.over);
    if (other === FAILED) return this.#fail(io, first);
    if (other === BACK) return this.#goBack();
    if (one === MORE || other === MORE) return MORE;
    if (this.#broken) return FAILED;
    return one === OVER && other === OVER ? OVER : WAITS;
  }

  /** The socket that could not be written to may still hold what its peer sent before it went. */
  #fail(io: Io, last: Half): Outcome {
    (last === this.#up ? this.#client : this.#remote).notice(FAULT);
    last.run(io, false);
    return FAILED;
  }

  #goBack(): Outcome {
    this.#up.unread();
    this.#down.unread();
    return BACK;
  }

  drop(io: Io): void {
    this.#up.drop(io);
    this.#down.drop(io);
    this.#client.drop(io);
    this.#remote.drop(io);
  }
}
