import type { KeptMuxSession } from "#dataplane/workers/wire/kept-mux-session.ts";
import type { Side } from "#dataplane/workers/shared/sides.ts";
import { FAILED, MORE, OVER, WAITS, type Outcome, type Task, type TaskIo } from "./task.ts";

/** The session of a client by smux, yamux or HTTP/2, in the slot of its connection. */
export class MuxSessionTask implements Task {
  queued = false;
  readonly halfClosed = false;
  readonly #session: KeptMuxSession;

  constructor(session: KeptMuxSession) {
    this.#session = session;
  }

  onEvents(_side: Side, events: number): boolean {
    return this.#session.onEvents(events);
  }

  limit(): void {} // its streams are

  grant(): void {}

  run(io: TaskIo): Outcome {
    const session = this.#session;
    const hasMore = session.turn(io);
    if (session.isDead) return FAILED;
    if (session.isOver) return OVER;
    return hasMore ? MORE : WAITS;
  }

  drop(io: TaskIo): void {
    this.#session.drop(io);
  }
}
