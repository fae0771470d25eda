import type { Duplex } from "node:stream";
import type { AcceptedConnection, OffloadedRecords, TakenRecords } from "#core/accepted.ts";
import type { Endpoint } from "#core/session.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { decodeShown, type ShownRecords } from "#dataplane/workers/shared/shown-records.ts";
import { both } from "./followers.ts";

const NOTHING = Buffer.alloc(0);

interface LeftEnds {
  readonly source: Endpoint;
  readonly local: Endpoint;
}

/** A client of REALITY whose handshake a worker has done, and which it has left to the main thread. */
export class LeftRecords implements AcceptedConnection, OffloadedRecords {
  readonly source: Endpoint;
  readonly local: Endpoint;
  readonly original = null;
  readonly request = null;
  readonly switched = null;
  readonly worker = null;
  readonly tls = null;
  readonly records = this;
  readonly #shown: ShownRecords;
  readonly #calls: AcceptCalls;
  #fd: number;
  #onStream: ((stream: Duplex) => void) | null = null;

  constructor(fd: number, records: Uint8Array, { source, local }: LeftEnds, calls: AcceptCalls) {
    this.#fd = fd;
    this.#shown = decodeShown(Buffer.from(records));
    this.source = source;
    this.local = local;
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

  stream(): never {
    throw new Error("records lie over the socket of this client");
  }

  reply(): never {
    return this.stream();
  }

  follow(on: (stream: Duplex) => void): void {
    this.#onStream = both(this.#onStream, on);
  }

  continueBy(stream: Duplex): void {
    this.#onStream?.(stream);
  }

  reset(): void {
    this.destroy();
  }

  destroy(): void {
    const { fd } = this.take();
    if (fd >= 0) this.#calls.discard(fd, false);
  }
}
