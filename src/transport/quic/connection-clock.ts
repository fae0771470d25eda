/** The clock of one connection in the event loop: flushes it when it asks for that, and wakes it when something is due. */
import type { Connection } from "./connection.ts";

export class ConnectionClock {
  readonly #connection: () => Connection;
  #isFlushDue = false;
  #isStopped = false;
  #turnMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #timerAtMs = Infinity;
  readonly #flush = (): void => this.#flushNow();
  readonly #tick = (): void => this.#onTimer();

  /** Asked for the connection from the first turn of the event loop on. */
  constructor(connection: () => Connection) {
    this.#connection = connection;
  }

  /** What comes in one batch is answered at its end. */
  wake(): void {
    if (this.#isFlushDue || this.#isStopped) return;
    this.#isFlushDue = true;
    this.#turnMs = performance.now();
    setImmediate(this.#flush);
  }

  /** What the clock showed as the flush of this turn was asked for: datagrams of one batch have one time. */
  get nowMs(): number {
    return this.#isFlushDue ? this.#turnMs : performance.now();
  }

  #flushNow(): void {
    this.#isFlushDue = false;
    const connection = this.#connection();
    if (connection.isClosed) return;
    if (connection.flush(performance.now())) this.wake();
    this.#arm(connection.deadlineMs);
  }

  #arm(atMs: number): void {
    if (atMs >= this.#timerAtMs || this.#isStopped) return; // it looks again then
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerAtMs = atMs;
    this.#timer = setTimeout(this.#tick, Math.max(1, Math.ceil(atMs - performance.now())));
    this.#timer.unref(); // what waits for the connection keeps the process alive by itself
  }

  #onTimer(): void {
    this.#timer = null;
    this.#timerAtMs = Infinity;
    const nowMs = performance.now();
    const connection = this.#connection();
    if (connection.deadlineMs <= nowMs) connection.onTimer(nowMs);
    this.#flushNow();
  }

  /** The connection is over. */
  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
