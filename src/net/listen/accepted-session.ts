import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { Metadata, OffloadedClient, StreamSession } from "#core/session.ts";

/** The reply to a client about its dial, in its own protocol. */
export interface DialReply {
  /** Of success; empty: nothing. */
  readonly success: Uint8Array;
  /** Says why the dial failed, where the protocol has words for it, and ends the stream. */
  fail(stream: Duplex, failure: Error): void;
}

/** The session of an accepted connection. A worker keeps the socket until something of the session needs the stream. */
export class AcceptedSession implements StreamSession {
  readonly network = "tcp";
  readonly metadata: Metadata;
  readonly #connection: AcceptedConnection;
  readonly #reply: DialReply;
  #isReplied = false;

  constructor(metadata: Metadata, connection: AcceptedConnection, reply: DialReply) {
    this.metadata = metadata;
    this.#connection = connection;
    this.#reply = reply;
  }

  get offloaded(): OffloadedClient | null {
    const { worker } = this.#connection;
    return worker === null ? null : { worker, success: this.#reply.success };
  }

  get stream(): Duplex {
    return this.#connection.stream();
  }

  reply(failure: Error | null): void {
    const { stream } = this;
    if (this.#isReplied || stream.destroyed) return;
    this.#isReplied = true;
    try {
      const { success } = this.#reply;
      if (failure !== null) this.#reply.fail(stream, failure);
      else if (success.length > 0) stream.write(success);
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
