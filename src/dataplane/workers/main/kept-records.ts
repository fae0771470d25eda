import type { Duplex } from "node:stream";
import type { OffloadedRecords, TakenRecords } from "#core/accepted.ts";
import { layersOf, type WireStart } from "#core/wire-state.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { decodeShown, type ShownRecords } from "#dataplane/workers/shared/shown-records.ts";
import type { KeptCover, KeptOwner } from "./kept-cover.ts";

/** Records of TLS 1.3 over a client whose socket a worker has, and the payload of the first one, which is still in the socket. */
export class KeptRecords implements OffloadedRecords, KeptCover {
  readonly payload: Buffer;
  readonly #shown: ShownRecords;
  readonly #owner: KeptOwner;
  readonly #calls: AcceptCalls;

  /** `request`: as a worker has written it. */
  constructor(request: Buffer, owner: KeptOwner, calls: AcceptCalls) {
    const { size, ...shown } = decodeShown(request);
    this.payload = request.subarray(size);
    this.#shown = shown;
    this.#owner = owner;
    this.#calls = calls;
  }

  get name(): number {
    return this.#shown.name;
  }

  get alpn(): number {
    return this.#shown.alpn;
  }

  take(): TakenRecords {
    const { recordBytes, ...shown } = this.#shown;
    const { isKept, handshakeBytes } = this.#owner;
    const fd = isKept ? this.#owner.leave() : -1;
    if (fd < 0 || handshakeBytes === 0) return { ...shown, fd, payload: Buffer.alloc(0) };
    this.#calls.consume(fd, recordBytes); // or a close over it would be a reset
    const payload = Buffer.from(this.payload.subarray(handshakeBytes));
    return { ...shown, fd, opened: shown.opened + 1, payload };
  }

  continueBy(stream: Duplex): void {
    this.#owner.onContinued(stream);
  }

  /** The worker has the records themselves. */
  over(start: WireStart): WireStart {
    return { kind: "records", numbers: [0, 0], unread: null, layers: layersOf(start) };
  }

  spared(free: () => void): void {
    free(); // the worker has it, and nothing of it is in the slot
  }

  destroy(): void {
    const fd = this.#owner.leave();
    if (fd >= 0) this.#calls.close(fd);
  }
}
