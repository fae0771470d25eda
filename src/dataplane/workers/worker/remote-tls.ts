import type { TlsRecipe } from "#core/tls-recipe.ts";
import { EAGAIN } from "#platform/linux/relay-calls.ts";
import { BLOCKED_BY_WRITE } from "#platform/linux/ssl.ts";
import { TLS_NOT_OPENED } from "#dataplane/workers/shared/accept-memory.ts";
import { PLAIN, TLS, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import type { PendingOwner } from "./pending-owner.ts";

/**
 * TLS to the server of a node, up to where its wire begins. The library's object stands in the relay memory from its making
 * on, where the main thread finds it should this worker die.
 */
export class RemoteTls {
  readonly #owner: PendingOwner;
  /** Of the remote side in the relay memory. */
  readonly #index: number;
  readonly #recipe: TlsRecipe;
  #object = 0n;

  constructor(owner: PendingOwner, slot: number, recipe: TlsRecipe) {
    this.#owner = owner;
    this.#index = slot * 2 + 1;
    this.#recipe = recipe;
  }

  /** 0n: there is none, or it has been freed. */
  get object(): bigint {
    return this.#object;
  }

  /**
   * Before the thread reads another command: from here on the object keeps the context alive. False: it cannot be had.
   */
  open(fd: number): boolean {
    const { host, table } = this.#owner;
    this.#object = host.ssl() === null ? 0n : host.nodes.connect(this.#recipe, fd);
    table.wireNumbers[this.#index * WIRE_NUMBERS] = Number(this.#object);
    if (this.#object !== 0n) table.owned[this.#index] = TLS;
    return this.#object !== 0n;
  }

  /** Null: the server has not said all yet. 0: it is the right one. Else `TLS_NOT_OPENED`. */
  advance(): number | null {
    const { host } = this.#owner;
    const answer = host.ssl()?.handshake(this.#object);
    if (answer === EAGAIN || answer === BLOCKED_BY_WRITE) return null;
    return answer === 1 && host.nodes.isRight(this.#recipe, this.#object) ? 0 : TLS_NOT_OPENED;
  }

  /** Where no wire has taken it. */
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
