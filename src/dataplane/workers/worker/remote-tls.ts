/** TLS to the server of a node, up to where its wire begins. */
import type { DetachedState } from "#core/handover.ts";
import type { LibraryTls } from "#core/tls-recipe.ts";
import { EAGAIN } from "#platform/linux/relay-calls.ts";
import { BLOCKED_BY_WRITE } from "#platform/linux/ssl.ts";
import { TLS_NOT_OPENED } from "#dataplane/workers/shared/accept-memory.ts";
import { PLAIN, TLS, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";
import type { PendingOwner } from "./pending-owner.ts";

export interface RemoteTls {
  /**
   * Before the thread reads another command: from here on what the recipe names is kept alive. False: this thread cannot do it.
   */
  open(fd: number): boolean;
  /** Once the socket is connected. Null: the server has not said all yet. 0: it is the right one. Else `TLS_NOT_OPENED`. */
  advance(): number | null;
  /** The state of its wire, behind the 0. */
  take(): Pick<DetachedState, "numbers" | "unread"> & Pick<OpenMessage, "onTicket">;
  /** The wire is made. */
  settle(): void;
  /** It comes to nothing. */
  free(): void;
}

/**
 * By the library. Its object stands in the relay memory from its making on, where the main thread finds it should this worker
 * die.
 */
export class RemoteLibraryTls implements RemoteTls {
  readonly #owner: PendingOwner;
  /** Of the remote side in the relay memory. */
  readonly #index: number;
  readonly #recipe: LibraryTls;
  #object = 0n;

  constructor(owner: PendingOwner, slot: number, recipe: LibraryTls) {
    this.#owner = owner;
    this.#index = slot * 2 + 1;
    this.#recipe = recipe;
  }

  open(fd: number): boolean {
    const { host, table } = this.#owner;
    this.#object = host.ssl() === null ? 0n : host.nodes.connect(this.#recipe, fd);
    table.wireNumbers[this.#index * WIRE_NUMBERS] = Number(this.#object);
    if (this.#object !== 0n) table.owned[this.#index] = TLS;
    return this.#object !== 0n;
  }

  advance(): number | null {
    const { host } = this.#owner;
    const answer = host.ssl()?.handshake(this.#object);
    if (answer === EAGAIN || answer === BLOCKED_BY_WRITE) return null;
    return answer === 1 && host.nodes.isRight(this.#recipe, this.#object) ? 0 : TLS_NOT_OPENED;
  }

  take(): Pick<DetachedState, "numbers" | "unread"> {
    return { numbers: [Number(this.#object)], unread: null };
  }

  settle(): void {
    this.#object = 0n;
  }

  free(): void {
    const { host, table } = this.#owner;
    const object = this.#object;
    this.#object = 0n;
    if (object === 0n || table.owned[this.#index] !== TLS) return;
    table.owned[this.#index] = PLAIN;
    table.wireNumbers[this.#index * WIRE_NUMBERS] = 0;
    host.atSeam?.("freeing");
    host.ssl()?.free(object);
  }
}
