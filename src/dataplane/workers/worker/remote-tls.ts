import type { LibraryTls } from "#core/tls-recipe.ts";
import { EAGAIN } from "#platform/linux/relay-calls.ts";
import { BLOCKED_BY_WRITE, BROKEN, ENDED } from "#platform/linux/ssl.ts";
import { UNDERLAY_FAILED } from "#dataplane/workers/shared/request-memory.ts";
import { PLAIN, TLS, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import type { PendingOwner } from "./pending-owner.ts";
import { READ_BYTES, type RemoteStage, type StageState } from "./remote-stage.ts";

/**
 * TLS to the server of a node by the library. Its object stands in the relay memory from its making on, where the main thread finds it should this worker
 * die.
 */
export class RemoteLibraryTls implements RemoteStage {
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
    return answer === 1 && host.nodes.isRight(this.#recipe, this.#object) ? 0 : UNDERLAY_FAILED;
  }

  say(bytes: Uint8Array): boolean {
    const ssl = this.#owner.host.ssl();
    ssl?.buffer.set(bytes);
    return ssl?.write(this.#object, bytes.length) === bytes.length;
  }

  hear(): Buffer | null {
    const ssl = this.#owner.host.ssl();
    const size = ssl?.readOnce(this.#object, READ_BYTES) ?? 0;
    if (size > 0) return Buffer.from(this.#owner.calls.buffer.subarray(0, size));
    const isOver = ssl === null || ssl.outcome === ENDED || ssl.outcome === BROKEN;
    return isOver ? Buffer.alloc(0) : null;
  }

  readonly canTake = true;

  take(): StageState {
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
