import type { Ssl } from "#platform/linux/ssl.ts";
import { EINTR } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";
import { PLAIN, TLS, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import { FAULT_NUMBER, HANDSHAKE_DONE, STAGE_NUMBER } from "#dataplane/workers/shared/tls-stage.ts";
import { TLS_ACCEPTED } from "#dataplane/workers/shared/opcodes.ts";
import type { ClientBytes } from "./client-bytes.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";

/** Records without data that a client may send in front of its first words. */
const MOST_EMPTY = 16;

/** A client whose handshake was done here: what it says first is looked at, and stays with the library. */
export class TlsBytes implements ClientBytes {
  readonly stream = null;
  readonly comesWhole = true;
  readonly #owner: PendingOwner;
  readonly #slot: number;
  readonly #fd: number;
  readonly #ssl: Ssl;
  readonly #object: bigint;

  constructor(
    owner: PendingOwner,
    { slot, fd }: Pick<RequestingTask, "slot" | "fd">,
    ssl: Ssl,
    object: bigint,
  ) {
    this.#owner = owner;
    this.#slot = slot;
    this.#fd = fd;
    this.#ssl = ssl;
    this.#object = object;
  }

  /** One record. */
  look(): number {
    const { bytes } = this.#owner.calls;
    for (let left = MOST_EMPTY; left > 0; left--) {
      const size = this.#ssl.peek(this.#object, bytes.length);
      if (size > 0) bytes.set(this.#ssl.buffer.subarray(0, size));
      if (size !== EINTR) return size;
    }
    return BROKEN;
  }

  consume(size: number): number {
    return this.#ssl.read(this.#object, size);
  }

  /** The library's object lies below what was planned here, or by the main thread. */
  begin(planned: OpenMessage): OpenMessage {
    this.#owner.table.kinds[this.#slot * 2] = TLS;
    return planned;
  }

  say(bytes: Uint8Array): number {
    this.#ssl.buffer.set(bytes);
    return this.#ssl.write(this.#object, bytes.length);
  }

  /** The library's object and the descriptor are the main thread's. */
  depart(): number {
    const { calls, host, table } = this.#owner;
    const at = this.#slot * 2 * WIRE_NUMBERS;
    table.wireNumbers[at + STAGE_NUMBER] = HANDSHAKE_DONE;
    table.wireNumbers[at + FAULT_NUMBER] = 0;
    calls.unwatch(host.epoll, this.#fd);
    return TLS_ACCEPTED;
  }

  free(): void {
    const { host, table } = this.#owner;
    table.owned[this.#slot * 2] = PLAIN;
    host.atSeam?.("freeing");
    this.#ssl.free(this.#object);
  }
}
