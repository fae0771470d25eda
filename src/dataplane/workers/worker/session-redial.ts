import type { TlsRecipe } from "#core/tls-recipe.ts";
import { TLS } from "#dataplane/workers/shared/wire-spec.ts";
import type { NodeSession } from "#dataplane/workers/wire/node-session.ts";
import type { Redial } from "#dataplane/workers/wire/node-stream.ts";
import type { PendingOwner } from "./pending-owner.ts";

/** A dial to the server of a node whose connection becomes a session. */
export interface SessionDial {
  /** What the kernel has said of the socket, epoll(7) bits. */
  events: number;
  /** What kind of TLS lies over its socket; null: none. */
  readonly opens: TlsRecipe["kind"] | null;
  readonly descriptor: number;
  /** 0, an errno, or `UNDERLAY_FAILED`. */
  start(): number;
  /** The same; null: there is no answer yet. */
  takeResult(): number | null;
  /** Behind the 0; null: it cannot be had. */
  takeSession(): NodeSession | null;
  /** What was opened is the session's. */
  settle(): void;
  hangUp(): void;
}

/** Another session for a stream whose own one has died. */
export class SessionRedial implements Redial {
  readonly #remote: SessionDial;
  readonly #owned: Int32Array;
  readonly #index: number;

  private constructor(remote: SessionDial, owned: Int32Array, index: number) {
    this.#remote = remote;
    this.#owned = owned;
    this.#index = index;
  }

  /** Null: it cannot. */
  static begin({ host, table }: PendingOwner, slot: number, remote: SessionDial): SessionRedial | null {
    if (remote.start() === 0 && host.watch(slot, remote.descriptor, 1))
      return new SessionRedial(remote, table.owned, slot * 2 + 1);
    remote.hangUp();
    return null;
  }

  onEvents(events: number): void {
    this.#remote.events |= events;
  }

  advance(): NodeSession | "failed" | null {
    const result = this.#remote.takeResult();
    if (result === null) return null;
    const session = result === 0 ? this.#remote.takeSession() : null;
    if (session === null) this.#remote.hangUp();
    else this.#remote.settle();
    return session ?? "failed";
  }

  /** Perhaps at the end of its slot, where what its wires hold was struck off before. */
  drop(): void {
    if (this.#remote.opens === "tls") this.#owned[this.#index] = TLS;
    this.#remote.hangUp();
  }
}
