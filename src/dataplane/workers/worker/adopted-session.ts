import type { TlsRecipe } from "#core/tls-recipe.ts";
import type { UnderlayRecipe } from "#core/wire-recipe.ts";
import type { Dial } from "#dataplane/workers/shared/request-memory.ts";
import type { NodeSession } from "#dataplane/workers/wire/node-session.ts";
import type { Redial } from "#dataplane/workers/wire/node-stream.ts";
import type { PendingOwner } from "./pending-owner.ts";
import { type SessionDial, SessionRedial } from "./session-redial.ts";

/**
 * A session that was idle, in the slot of a connection. Until its server has answered what opens another one is kept: by then
 * the version or plan that it was dialled by may have let go of that.
 */
export class AdoptedSession {
  readonly session: NodeSession;
  readonly #owner: PendingOwner;
  readonly #slot: number;
  /** What is held of it; null: nothing, or nothing any more. */
  #held: TlsRecipe | null;
  readonly #dialAgain: () => SessionDial;

  private constructor(
    owner: PendingOwner,
    slot: number,
    session: NodeSession,
    held: TlsRecipe | null,
    dialAgain: () => SessionDial,
  ) {
    this.#owner = owner;
    this.#slot = slot;
    this.session = session;
    this.#held = held;
    this.#dialAgain = dialAgain;
  }

  /** Null: there is none. */
  static take(
    owner: PendingOwner,
    slot: number,
    { session: recipe, tls }: UnderlayRecipe,
    dial: Dial,
    dialAgain: (dial: Dial) => SessionDial,
  ): AdoptedSession | null {
    const session = recipe === undefined ? null : owner.sessions.adopt(recipe, slot);
    if (session === null) return null;
    const held = tls !== null && hold(owner, tls) ? tls : null;
    const kept = { ...dial, address: dial.address.slice() }; // which is lent
    return new AdoptedSession(owner, slot, session, held, () => dialAgain(kept));
  }

  /** Null: it cannot be begun. */
  redial(): Redial | null {
    return this.#held === null ? null : SessionRedial.begin(this.#owner, this.#slot, this.#dialAgain());
  }

  /** No other session will be asked for. */
  settle(): void {
    const held = this.#held;
    this.#held = null;
    if (held?.kind === "tls") this.#owner.host.nodes.release(held);
    else if (held !== null) this.#owner.host.browsers.release(held);
  }

  /** Before its stream is opened. */
  drop(): void {
    this.settle();
    this.#owner.sessions.discard(this.session, this.#slot);
  }
}

function hold({ host }: PendingOwner, tls: TlsRecipe): boolean {
  return tls.kind === "tls" ? host.nodes.hold(tls) : host.browsers.hold(tls);
}
