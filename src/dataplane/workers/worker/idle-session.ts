import { BUFFER_BYTES, EAGAIN, EINTR, WRITABLE } from "#platform/linux/relay-calls.ts";
import type { NodeSession } from "#dataplane/workers/wire/node-session.ts";
import { FAILED, MORE, OVER, WAITS, type Outcome, type Task, type TaskIo } from "./task.ts";

/** Of what means nothing, in one turn. */
const MOST_READS = 16;

/** A session without a stream, in a slot of its own: what its server says is answered, and its end is seen. */
export class IdleSession implements Task {
  queued = false;
  readonly halfClosed = false;
  readonly slot: number;
  readonly session: NodeSession;
  /** In ms of `performance.now()`. */
  sinceMs: number;
  /** It is used no more, and ends once all is out that was said in it. */
  isClosing = false;
  readonly #onGone: (one: IdleSession) => void;

  constructor(slot: number, session: NodeSession, sinceMs: number, onGone: (one: IdleSession) => void) {
    this.slot = slot;
    this.session = session;
    this.sinceMs = sinceMs;
    this.#onGone = onGone;
  }

  onEvents(_side: number, events: number): boolean {
    const isNews = events !== WRITABLE || this.session.pending || this.isClosing;
    if (isNews) this.session.inner.onEvents(events);
    return isNews;
  }

  limit(): void {} // nothing of it is counted

  grant(): void {}

  run(io: TaskIo): Outcome {
    const { session } = this;
    for (let reads = 0; reads < MOST_READS && session.inner.readable && !session.isDead; reads++) {
      const bytes = session.read(io, BUFFER_BYTES);
      if (bytes === EAGAIN) break;
    }
    if (session.isDead) return OVER;
    const flushed = session.pending && session.inner.writable ? session.flush(io) : EINTR;
    if (flushed < 0 && flushed !== EAGAIN && flushed !== EINTR) return FAILED;
    if (this.isClosing && !session.pending) {
      session.inner.endWriting(io);
      return OVER;
    }
    const hasMore = session.inner.readable || (session.pending && session.inner.writable);
    return hasMore ? MORE : WAITS;
  }

  drop(io: TaskIo): void {
    this.#onGone(this);
    this.session.inner.drop(io);
  }
}
