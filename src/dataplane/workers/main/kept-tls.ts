import type { Duplex } from "node:stream";
import type { OffloadedTls } from "#core/accepted.ts";
import type { Ssl } from "#platform/linux/ssl.ts";
import { PLAIN, TLS, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import { float64At } from "#lib/at.ts";
import type { WorkerHandle } from "./worker-handle.ts";

/** What the client's owner does around it. */
interface KeptTlsOwner {
  /** The thread waits for what becomes of it. */
  readonly isKept: boolean;
  /** It uses nothing of the client meanwhile. */
  readonly isIdle: boolean;
  /** The thread has nothing of the client any more. A descriptor of our own; -1: there is none. */
  leave(): number;
  onContinued(stream: Duplex): void;
  /** So many bytes were understood, and are not to be read again. */
  readonly handshakeBytes: number;
}

/** TLS over a client whose socket a worker has. The handshake is done, and neither thread uses the library's object until it dials. */
export class KeptTls implements OffloadedTls {
  readonly failure = null;
  readonly isDone = true;
  readonly #thread: WorkerHandle;
  readonly #index: number;
  /** The library's object, whichever thread uses it. */
  readonly address: bigint;
  readonly #ssl: Ssl;
  readonly #owner: KeptTlsOwner;

  constructor(thread: WorkerHandle, index: number, ssl: Ssl, owner: KeptTlsOwner) {
    this.address = BigInt(float64At(thread.table.wireNumbers, index * WIRE_NUMBERS));
    this.#thread = thread;
    this.#index = index;
    this.#ssl = ssl;
    this.#owner = owner;
  }

  get object(): bigint | undefined {
    return this.#owner.isIdle ? this.address : undefined;
  }

  take(): { readonly fd: number; readonly ssl: bigint } {
    if (!this.#owner.isKept) throw new Error("nothing is left of this client");
    this.#thread.table.owned[this.#index] = PLAIN; // before the thread is told, and the slot is another's
    const { address } = this;
    const { handshakeBytes } = this.#owner;
    const fd = this.#owner.leave();
    this.#ssl.moveSocket(address, fd);
    if (handshakeBytes > 0) this.#ssl.read(address, handshakeBytes);
    return { fd, ssl: address };
  }

  continueBy(stream: Duplex): void {
    this.#owner.onContinued(stream);
  }

  /** Does something that frees all else which lies over the socket. */
  spared(free: () => void): void {
    const { owned, wireNumbers } = this.#thread.table;
    owned[this.#index] = PLAIN;
    free();
    owned[this.#index] = TLS;
    wireNumbers[this.#index * WIRE_NUMBERS] = Number(this.address);
  }
}
