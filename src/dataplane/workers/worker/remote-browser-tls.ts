import type { BrowserTls } from "#core/tls-recipe.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { TLS_NOT_OPENED } from "#dataplane/workers/shared/accept-memory.ts";
import type { BrowserHandshake } from "#dataplane/workers/wire/browser-tls.ts";
import type { ClientConnection } from "#transport/tls13/client-connection.ts";
import type { PendingOwner } from "./pending-owner.ts";
import type { RemoteTls } from "./remote-tls.ts";

/** Of a handshake in one read: a chain with ML-DSA keys is not longer. */
const READ_BYTES = 32 * 1024;

/** By our own engine, which says what a browser says. */
export class RemoteBrowserTls implements RemoteTls {
  readonly #owner: PendingOwner;
  readonly #recipe: BrowserTls;
  #fd = -1;
  /** It holds the authorities. */
  #isOpen = false;
  /** Null: it has not begun. */
  #handshake: BrowserHandshake | null = null;

  constructor(owner: PendingOwner, recipe: BrowserTls) {
    this.#owner = owner;
    this.#recipe = recipe;
  }

  open(fd: number): boolean {
    this.#fd = fd;
    this.#isOpen = this.#owner.host.browsers.hold(this.#recipe);
    return this.#isOpen;
  }

  advance(): number | null {
    try {
      const handshake = this.#handshake ?? this.#begin();
      const answer = handshake === null ? TLS_NOT_OPENED : this.#goOn(handshake.connection);
      if (answer === TLS_NOT_OPENED) handshake?.onFault(null);
      return answer;
    } catch (fault) {
      this.#handshake?.onFault(fault);
      if (this.#handshake !== null) this.#say(this.#handshake.connection); // the alert
      return TLS_NOT_OPENED;
    }
  }

  #begin(): BrowserHandshake | null {
    this.#handshake = this.#owner.host.browsers.begin(this.#recipe);
    this.#handshake?.connection.start();
    return this.#handshake;
  }

  #goOn(connection: ClientConnection): number | null {
    const { calls } = this.#owner;
    for (;;) {
      if (!this.#say(connection)) return TLS_NOT_OPENED;
      if (connection.canDepart) return 0;
      const size = calls.receive(this.#fd, READ_BYTES);
      if (size === EAGAIN) return null;
      if (size === EINTR) continue;
      if (size <= 0) return TLS_NOT_OPENED;
      connection.feed(Buffer.from(calls.buffer.subarray(0, size)));
      // Payload before the request was sent is none that the node's protocol knows.
      if (connection.read() !== null) return TLS_NOT_OPENED;
    }
  }

  /** False: the socket does not take it, though it is empty. */
  #say(connection: ClientConnection): boolean {
    const bytes = connection.takeOutput();
    if (bytes === null) return true;
    const { calls } = this.#owner;
    calls.buffer.set(bytes);
    return calls.send(this.#fd, bytes.length) === bytes.length;
  }

  take(): ReturnType<RemoteTls["take"]> {
    const connection = this.#handshake?.connection;
    if (connection === undefined) throw new Error("there is no handshake");
    this.#handshake = null;
    return { ...connection.depart(), onTicket: connection.ticketKeeper };
  }

  settle(): void {
    this.free();
  }

  free(): void {
    this.#handshake?.connection[Symbol.dispose]();
    this.#handshake = null;
    if (this.#isOpen) this.#owner.host.browsers.release(this.#recipe);
    this.#isOpen = false;
  }
}
