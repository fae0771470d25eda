import { performance } from "node:perf_hooks";
import { EAGAIN, FAULT, HANGUP, WRITABLE } from "#platform/linux/relay-calls.ts";
import { hasArrived } from "#dataplane/workers/wire/has-arrived.ts";
import type { KeptSession } from "#dataplane/workers/wire/kept-session.ts";
import { LONGEST_TURN_MS } from "#dataplane/workers/wire/wire.ts";
import { FAILED, MORE, OVER, WAITS, type Outcome, type Task, type TaskIo } from "./task.ts";

/** Of the session in one turn. */
const MOST_READS = 16;
/** What a client that has ended may take for what is still to be said. */
const CLOSE_MS = 5_000;

/** The session of a client, in the slot of its connection: its turns read what is for no stream alone, and send what waits. */
export class SessionTask implements Task {
  queued = false;
  readonly halfClosed = false;
  readonly #session: KeptSession;
  /** Infinity: it goes on. */
  #closesAtMs = Infinity;

  constructor(session: KeptSession) {
    this.#session = session;
  }

  onEvents(_side: number, events: number): boolean {
    const session = this.#session;
    if (events === 0) return true; // a turn that it wants itself
    session.inner.onEvents(events);
    if ((events & (FAULT | HANGUP)) !== 0 || session.hasUnsent || session.isDead) return true;
    if (events === WRITABLE) return false;
    const { reader } = session;
    reader?.wake();
    return reader === null;
  }

  limit(): void {} // nothing of it is counted

  grant(): void {}

  run(io: TaskIo): Outcome {
    const session = this.#session;
    if (this.#closesAtMs !== Infinity) return this.#close(io, session);
    if (session.isReadable) this.#read(io, session);
    if (!session.isDead || session.isOrderly) session.flush(io);
    if (session.isDead) return session.isOrderly ? this.#close(io, session) : FAILED;
    if (session.inner.readable) session.reader?.wake();
    return session.isReadable ? MORE : WAITS;
  }

  #read(io: TaskIo, session: KeptSession): void {
    const untilMs = performance.now() + LONGEST_TURN_MS;
    for (let reads = 0; reads < MOST_READS && session.isReadable; reads++)
      if (session.pull(io) === EAGAIN || performance.now() >= untilMs) return;
  }

  #close(io: TaskIo, session: KeptSession): Outcome {
    if (this.#closesAtMs === Infinity) {
      this.#closesAtMs = performance.now() + CLOSE_MS;
      session.cut();
    }
    if (performance.now() >= this.#closesAtMs) return OVER;
    session.flush(io);
    if (!session.isOrderly) return FAILED;
    const hasEnded = !session.hasUnsent && session.inner.endWriting(io) !== EAGAIN;
    if (hasEnded && hasArrived(io.calls, session.inner.fd)) return OVER;
    io.wakeAtMs = Math.min(io.wakeAtMs, this.#closesAtMs);
    return WAITS;
  }

  drop(io: TaskIo): void {
    this.#session.cut();
    this.#session.inner.drop(io);
  }
}
