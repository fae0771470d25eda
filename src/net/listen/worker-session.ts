import type { Duplex } from "node:stream";
import type { WorkerConnection } from "#core/held.ts";
import type { Metadata, StreamSession } from "#core/session.ts";
import { guardErrors, streamSession } from "./accept.ts";

/** How an inbound sends the client of a stream the result of its dial. */
export type ReplierOf = (stream: Duplex) => (failure: Error | null) => void;

/** The session of a client whose socket a worker holds. Reading `stream` takes the socket from the worker. */
export class OffloadedSession implements StreamSession {
  readonly network = "tcp";
  readonly metadata: Metadata;
  readonly #client: WorkerConnection;
  readonly #words: Uint8Array;
  readonly #tellerOf: ReplierOf;
  #taken: StreamSession | null = null;

  /** `words`: the success reply to the client. */
  constructor(metadata: Metadata, client: WorkerConnection, words: Uint8Array, tellerOf: ReplierOf) {
    this.metadata = metadata;
    this.#client = client;
    this.#words = words;
    this.#tellerOf = tellerOf;
  }

  get offloaded(): NonNullable<StreamSession["offloaded"]> | null {
    return this.#taken === null ? { client: this.#client, words: this.#words } : null;
  }

  get stream(): Duplex {
    return this.#session().stream;
  }

  reply(failure: Error | null): void {
    this.#session().reply(failure);
  }

  #session(): StreamSession {
    if (this.#taken !== null) return this.#taken;
    const stream = this.#client.toSocket();
    guardErrors(stream);
    this.#taken = streamSession(this.metadata, stream, this.#tellerOf(stream));
    return this.#taken;
  }
}
