import type { BrowserTls } from "#core/tls-recipe.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { UNDERLAY_FAILED } from "#dataplane/workers/shared/request-memory.ts";
import type { BrowserHandshake } from "#dataplane/workers/wire/browser-tls.ts";
import type { ClientConnection } from "#transport/tls13/client-connection.ts";
import type { PendingOwner } from "./pending-owner.ts";
import { READ_BYTES, type RemoteStage, type StageState } from "./remote-stage.ts";

/** TLS to the server of a node by our own engine, which says what a browser says. */
export class RemoteBrowserTls implements RemoteStage {
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
      const answer = handshake === null ? UNDERLAY_FAILED : this.#goOn(handshake);
      if (answer === UNDERLAY_FAILED) handshake?.onFault(null);
      return answer;
    } catch (fault) {
      this.#handshake?.onFault(fault);
      if (this.#handshake !== null) this.#flush(this.#handshake.connection); // the alert
      return UNDERLAY_FAILED;
    }
  }

  #begin(): BrowserHandshake | null {
    this.#handshake = this.#owner.host.browsers.begin(this.#recipe);
    this.#handshake?.connection.start();
    return this.#handshake;
  }

  #goOn(handshake: BrowserHandshake): number | null {
    const { connection } = handshake;
    for (;;) {
      if (!this.#flush(connection)) return UNDERLAY_FAILED;
      if (connection.canDepart) return handshake.isRight() ? 0 : this.#leave(connection);
      const size = this.#receive(connection);
      if (size === EAGAIN) return null;
      if (size <= 0) return UNDERLAY_FAILED;
      // Payload before the request was sent is none that the node's protocol knows.
      if (connection.read() !== null) return UNDERLAY_FAILED;
    }
  }

  /** As a browser that has connected and needs nothing. */
  #leave(connection: ClientConnection): number {
    this.#send(connection.end());
    return UNDERLAY_FAILED;
  }

  /** Hands the connection what has come: how much, or why none. */
  #receive(connection: ClientConnection): number {
    const { calls } = this.#owner;
    let size: number = EINTR;
    while (size === EINTR) size = calls.receive(this.#fd, READ_BYTES);
    if (size > 0) connection.feed(Buffer.from(calls.buffer.subarray(0, size)));
    return size;
  }

  #flush(connection: ClientConnection): boolean {
    const bytes = connection.takeOutput();
    return bytes === null || this.#send(bytes);
  }

  /** False: the socket does not take it, though it is empty. */
  #send(bytes: Uint8Array): boolean {
    const { calls } = this.#owner;
    calls.buffer.set(bytes);
    return calls.send(this.#fd, bytes.length) === bytes.length;
  }

  say(bytes: Uint8Array): boolean {
    const connection = this.#handshake?.connection;
    return connection !== undefined && this.#send(connection.write(bytes));
  }

  /** Faults of the server are an end, too. */
  hear(): Buffer | null {
    const connection = this.#handshake?.connection;
    try {
      for (let size = 1; connection !== undefined && size > 0;) {
        const payload = connection.read();
        if (payload !== null) return payload;
        size = this.#receive(connection);
        if (size === EAGAIN) return null;
      }
      return Buffer.alloc(0);
    } catch {
      return Buffer.alloc(0);
    }
  }

  get canTake(): boolean {
    return this.#handshake?.connection.canDepart === true;
  }

  take(): StageState {
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
