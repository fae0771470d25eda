import type { NodeSession } from "#dataplane/workers/wire/node-session.ts";
import type { Redial, StreamPlace } from "#dataplane/workers/wire/node-stream.ts";
import type { AdoptedSession } from "./adopted-session.ts";
import type { NodeSessions } from "./node-sessions.ts";

/** The slot of a stream, as far as its sessions are concerned. */
export class SessionPlace implements StreamPlace {
  readonly #sessions: NodeSessions;
  readonly #slot: number;
  /** Null: its session is a new one. */
  readonly #adopted: AdoptedSession | null;

  constructor(sessions: NodeSessions, slot: number, adopted: AdoptedSession | null) {
    this.#sessions = sessions;
    this.#slot = slot;
    this.#adopted = adopted;
  }

  release(session: NodeSession): void {
    this.#sessions.release(session, this.#slot);
  }

  discard(session: NodeSession): void {
    this.#sessions.discard(session, this.#slot);
  }

  redial(): Redial | null {
    return this.#adopted?.redial() ?? null;
  }

  settle(): void {
    this.#adopted?.settle();
  }
}
