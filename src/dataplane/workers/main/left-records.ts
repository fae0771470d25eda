import type { OffloadedRecords, TakenRecords } from "#core/accepted.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { decodeShown, type ShownRecords } from "#dataplane/workers/shared/shown-records.ts";
import { type ConnectionEnds, LeftConnection } from "./left-connection.ts";

const NOTHING = Buffer.alloc(0);

/** A client of REALITY whose handshake a worker has done, and which it has left to the main thread. */
export class LeftRecords extends LeftConnection implements OffloadedRecords {
  readonly tls = null;
  readonly records = this;
  readonly #shown: ShownRecords;
  readonly #calls: AcceptCalls;
  #fd: number;

  constructor(fd: number, records: Uint8Array, ends: ConnectionEnds, calls: AcceptCalls) {
    super(ends, null);
    this.#fd = fd;
    this.#shown = decodeShown(Buffer.from(records));
    this.#calls = calls;
  }

  get name(): number {
    return this.#shown.name;
  }

  get alpn(): number {
    return this.#shown.alpn;
  }

  take(): TakenRecords {
    const fd = this.#fd;
    this.#fd = -1;
    return { ...this.#shown, fd, payload: NOTHING };
  }

  destroy(): void {
    const { fd } = this.take();
    if (fd >= 0) this.#calls.discard(fd, false);
  }
}
