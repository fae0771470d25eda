import { ENOTCONN, EPIPE, FAULT, WRITABLE } from "#platform/linux/relay-calls.ts";
import { BACK, FAILED, MORE, OVER, WAITS } from "./task.ts";
import { CLIENT, UPLOAD } from "#dataplane/workers/shared/sides.ts";
import type { Task, TaskIo, Outcome } from "./task.ts";
import type { Side, FlowDirection } from "#dataplane/workers/shared/sides.ts";
import { RelayDirection } from "./relay-direction.ts";
import { hasArrived } from "#dataplane/workers/wire/has-arrived.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";

/**
 * The kernel's error for a write to a peer whose end came before its reset; or for `shutdown` on a closed connection.
 */
const endedBefore = (errno: number): boolean => errno === EPIPE || errno === ENOTCONN;

/** An end that is said by a message (a chunk, a frame, a record) may be followed by those of the layers below it. */
function mayClose({ calls }: TaskIo, { fd, bareSource }: Wire): boolean {
  return fd < 0 || bareSource >= 0 || hasArrived(calls, fd); // or its end was the socket's
}

/** Two wires, of whatever kinds. */
export class RelayTask implements Task {
  queued = false;
  readonly #client: Wire;
  readonly #remote: Wire;
  readonly #up: RelayDirection;
  readonly #down: RelayDirection;
  /** The side with the latest event is read from first. */
  #first: RelayDirection;

  /** `slot` is its index in the table of counts. */
  constructor(client: Wire, remote: Wire, slot: number) {
    this.#client = client;
    this.#remote = remote;
    this.#up = new RelayDirection(client, remote, slot * 2);
    this.#down = new RelayDirection(remote, client, slot * 2 + 1);
    this.#first = this.#up;
  }

  get halfClosed(): boolean {
    return this.#up.ended || this.#down.ended;
  }

  onEvents(side: Side, events: number): boolean {
    const port = side === CLIENT ? this.#client : this.#remote;
    const half = side === CLIENT ? this.#up : this.#down;
    // Such as the acknowledgement of an end, which only a close may wait for.
    const isWaitedFor = half.isAbandoned || (this.#up.over && this.#down.over);
    if (events === WRITABLE && port.writable && !port.readable && !isWaitedFor) return false;
    this.#first = half;
    port.onEvents(events);
    if ((events & FAULT) !== 0 && port.outlivesSocket !== true) half.isBroken = true;
    return true;
  }

  limit(limited: boolean): void {
    this.#up.limit(limited);
    this.#down.limit(limited);
  }

  grant(way: FlowDirection, bytes: number): void {
    (way === UPLOAD ? this.#up : this.#down).grant(bytes);
  }

  run(io: TaskIo): Outcome {
    const first = this.#first;
    const second = this.#opposite(first);
    const one = this.#turn(io, first);
    if (one === FAILED || one === BACK) return one;
    const wasOver = second.over;
    const other = this.#turn(io, second);
    if (other === FAILED || other === BACK) return other;
    if (one === MORE || other === MORE) return MORE;
    if (this.#up.isBroken) return this.#onReset(io, this.#up);
    if (this.#down.isBroken) return this.#onReset(io, this.#down);
    if (this.#down.over && this.#remote.isOver?.(io) === true) return OVER;
    if (this.#up.over && this.#client.isOver?.(io) === true) return OVER;
    if (one === WAITS && second.over && !wasOver) return MORE; // it may have waited for that
    this.#client.remind?.(io);
    this.#remote.remind?.(io);
    const isOver = one === OVER && other === OVER;
    return isOver && mayClose(io, this.#client) && mayClose(io, this.#remote) ? OVER : WAITS;
  }

  #turn(io: TaskIo, half: RelayDirection): Outcome {
    const opposite = this.#opposite(half);
    const outcome = half.run(io, opposite.over);
    if (outcome === BACK) return this.#goBack();
    if (outcome !== FAILED) return outcome;
    // The socket that could not be written to may still hold what its peer sent before it went.
    this.#portOf(opposite).onEvents(FAULT);
    if (half.refusal !== 0 && (opposite.ended || endedBefore(half.refusal))) return this.#abandon(io, half);
    opposite.run(io, false);
    return FAILED;
  }

  /** A reset behind an end is no fault of what was said before it. */
  #onReset(io: TaskIo, half: RelayDirection): Outcome {
    half.isBroken = false;
    const opposite = this.#opposite(half);
    const hasSaidAll = half.ended || opposite.isAbandoned;
    const { fd } = this.#portOf(half);
    const isOrderly = hasSaidAll || (fd >= 0 && io.calls.takeError(fd) === EPIPE);
    return isOrderly ? this.#abandon(io, opposite) : FAILED;
  }

  #abandon(io: TaskIo, half: RelayDirection): Outcome {
    if (!half.over && !half.isAbandoned) {
      half.abandon(io);
      this.#portOf(half).onUnwanted?.();
    }
    return MORE;
  }

  #opposite(half: RelayDirection): RelayDirection {
    return half === this.#up ? this.#down : this.#up;
  }

  /** That it reads from. */
  #portOf(half: RelayDirection): Wire {
    return half === this.#up ? this.#client : this.#remote;
  }

  #goBack(): Outcome {
    this.#up.unread();
    this.#down.unread();
    return BACK;
  }

  drop(io: TaskIo): void {
    this.#up.drop(io);
    this.#down.drop(io);
    this.#client.drop(io);
    this.#remote.drop(io);
  }
}
