import type { Ssl } from "#platform/linux/ssl.ts";
import { EINTR } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import { PLAIN } from "#dataplane/workers/shared/wire-spec.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import type { AcceptorHost } from "./pending-task.ts";

/** Records without data that a client may send in front of its first words. */
const MOST_EMPTY = 16;

/** Of the acceptor. */
interface TlsBytesOwner {
  readonly calls: AcceptCalls;
  readonly table: RelayMemory;
  readonly host: AcceptorHost;
}

/** A client whose handshake was done here: what it says first is looked at, and stays with the library. */
export class TlsBytes {
  readonly #owner: TlsBytesOwner;
  readonly #slot: number;
  readonly #ssl: Ssl;
  readonly #object: bigint;

  constructor(owner: TlsBytesOwner, slot: number, ssl: Ssl, object: bigint) {
    this.#owner = owner;
    this.#slot = slot;
    this.#ssl = ssl;
    this.#object = object;
  }

  /** As `AcceptCalls.look`, of one record. */
  look(): number {
    const { bytes } = this.#owner.calls;
    for (let left = MOST_EMPTY; left > 0; left--) {
      const size = this.#ssl.peek(this.#object, bytes.length);
      if (size > 0) bytes.set(this.#ssl.buffer.subarray(0, size));
      if (size !== EINTR) return size;
    }
    return BROKEN;
  }

  /** As `AcceptCalls.consume`, of what was looked at. */
  consume(size: number): number {
    return this.#ssl.read(this.#object, size);
  }

  /** As `AcceptCalls.say`. */
  say(bytes: Uint8Array): number {
    this.#ssl.buffer.set(bytes);
    return this.#ssl.write(this.#object, bytes.length);
  }

  /** Of a client that the main thread does not know. */
  free(): void {
    const { host, table } = this.#owner;
    table.owned[this.#slot * 2] = PLAIN;
    host.atSeam?.("freeing");
    this.#ssl.free(this.#object);
  }
}
