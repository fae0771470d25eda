import { HANDED_OVER } from "#dataplane/workers/shared/opcodes.ts";
import type { ClientBytes } from "./client-bytes.ts";
import type { PendingOwner } from "./pending-owner.ts";

/** Of a client over bare TCP: those of its socket. */
export class SocketBytes implements ClientBytes {
  readonly stream = null;
  readonly comesWhole = false;
  readonly #owner: PendingOwner;
  readonly #fd: number;

  constructor(owner: PendingOwner, fd: number) {
    this.#owner = owner;
    this.#fd = fd;
  }

  look(): number {
    return this.#owner.calls.look(this.#fd);
  }

  consume(size: number): number {
    return this.#owner.calls.consume(this.#fd, size);
  }

  say(bytes: Uint8Array): number {
    return this.#owner.calls.say(this.#fd, bytes);
  }

  depart(): number {
    return HANDED_OVER; // the main thread makes a descriptor of its own first
  }

  free(): void {}
}
