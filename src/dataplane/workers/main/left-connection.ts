import type { Duplex } from "node:stream";
import type { AcceptedConnection, Followed, OffloadedTls, Switched } from "#core/accepted.ts";
import type { Endpoint } from "#core/session.ts";
import { both } from "./followers.ts";

export interface ConnectionEnds {
  readonly source: Endpoint;
  /** The listening side's own address. */
  readonly local: Endpoint;
}

/** A client whose handshake a worker has begun or done, and which it has left to the main thread: what lies over its socket is to be taken. */
export abstract class LeftConnection implements AcceptedConnection {
  readonly source: Endpoint;
  readonly local: Endpoint;
  readonly original = null;
  readonly request = null;
  readonly worker = null;
  readonly switched: Switched | null;
  abstract readonly tls: OffloadedTls | null;
  #onStream: ((one: Followed) => void) | null = null;

  constructor({ source, local }: ConnectionEnds, switched: Switched | null) {
    this.source = source;
    this.local = local;
    this.switched = switched;
  }

  stream(): never {
    throw new Error("what lies over the socket of this client is to be taken");
  }

  reply(): never {
    return this.stream();
  }

  follow(on: (one: Followed) => void): void {
    this.#onStream = both(this.#onStream, on);
  }

  continueBy(stream: Duplex): void {
    this.#onStream?.(stream);
  }

  reset(): void {
    this.destroy();
  }

  abstract destroy(): void;
}
