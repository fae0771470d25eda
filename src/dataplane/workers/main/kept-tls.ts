import type { Duplex } from "node:stream";
import type { OffloadedTls } from "#core/accepted.ts";
import { layersOf, type WireStart } from "#core/wire-state.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import type { Ssl } from "#platform/linux/ssl.ts";
import { PLAIN, TLS, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import { float64At } from "#lib/at.ts";
import type { KeptCover, KeptOwner } from "./kept-cover.ts";
import type { WorkerHandle } from "./worker-handle.ts";

interface KeptTlsOwner extends KeptOwner {
  /** It uses nothing of the client meanwhile. */
  readonly isIdle: boolean;
}

/** TLS over a client whose socket a worker has. The handshake is done, and neither thread uses the library's object until it dials. */
export class KeptTls implements OffloadedTls, KeptCover {
  readonly failure = null;
  readonly isDone = true;
  readonly #thread: WorkerHandle;
  readonly #index: number;
  /** The library's object, whichever thread uses it. */
  readonly #address: bigint;
  readonly #ssl: Ssl;
  readonly #calls: RelayCalls;
  readonly #owner: KeptTlsOwner;

  constructor(thread: WorkerHandle, index: number, ssl: Ssl, calls: RelayCalls, owner: KeptTlsOwner) {
    this.#address = BigInt(float64At(thread.table.wireNumbers, index * WIRE_NUMBERS));
    this.#thread = thread;
    this.#index = index;
    this.#ssl = ssl;
    this.#calls = calls;
    this.#owner = owner;
  }

  get object(): bigint | undefined {
    return this.#owner.isIdle ? this.#address : undefined;
  }

  take(): { readonly fd: number; readonly ssl: bigint } {
    if (!this.#owner.isKept) throw new Error("nothing is left of this client");
    this.#thread.table.owned[this.#index] = PLAIN; // before the thread is told, and the slot is another's
    const address = this.#address;
    const { handshakeBytes } = this.#owner;
    const fd = this.#owner.leave();
    this.#ssl.moveSocket(address, fd);
    if (handshakeBytes > 0) this.#ssl.read(address, handshakeBytes);
    return { fd, ssl: address };
  }

  continueBy(stream: Duplex): void {
    this.#owner.onContinued(stream);
  }

  over(start: WireStart): WireStart {
    return { kind: "tls", numbers: [Number(this.#address)], unread: null, layers: layersOf(start) };
  }

  spared(free: () => void): void {
    const { owned, wireNumbers } = this.#thread.table;
    owned[this.#index] = PLAIN;
    free();
    owned[this.#index] = TLS;
    wireNumbers[this.#index * WIRE_NUMBERS] = Number(this.#address);
  }

  destroy(): void {
    const { fd, ssl } = this.take();
    this.#ssl.free(ssl);
    if (fd >= 0) this.#calls.close(fd);
  }
}
