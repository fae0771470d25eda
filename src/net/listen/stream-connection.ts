import type { Duplex } from "node:stream";
import type { AcceptedConnection, LeftToDest, Switched } from "#core/accepted.ts";
import type { Endpoint } from "#core/session.ts";
import { REPLACED } from "#core/sockets.ts";
import { abortStream } from "#core/stream.ts";
import { guardErrors } from "./accept.ts";
import { type Answered, NOT_ANSWERED } from "./accept-offload.ts";

export interface AcceptedEnds {
  readonly source: Endpoint;
  readonly local: Endpoint;
  readonly original?: Endpoint | null;
}

/** An accepted connection that the event loop has: by its socket, or by what TLS has made of one. */
export class StreamConnection implements AcceptedConnection {
  readonly source: Endpoint;
  readonly local: Endpoint;
  readonly original: Endpoint | null;
  readonly request = null;
  readonly worker = null;
  readonly tls = null;
  readonly switched: Switched | null;
  readonly left: LeftToDest | null;
  readonly #stream: Duplex;
  #repliedBytes: number;

  /** `answered`: by a worker. */
  constructor(
    stream: Duplex,
    { source, local, original = null }: AcceptedEnds,
    { repliedBytes, switched, left }: Answered = NOT_ANSWERED,
  ) {
    this.source = source;
    this.local = local;
    this.original = original;
    this.#stream = stream;
    this.#repliedBytes = repliedBytes;
    this.switched = switched;
    this.left = left ?? null;
    guardErrors(stream);
  }

  stream(): Duplex {
    return this.#stream;
  }

  reply(bytes: Uint8Array): void {
    const sent = Math.min(bytes.length, this.#repliedBytes);
    this.#repliedBytes -= sent;
    if (sent < bytes.length) this.#stream.write(bytes.subarray(sent));
  }

  follow(on: (stream: Duplex) => void): void {
    on(this.#stream);
    this.#stream.once(REPLACED, on);
  }

  destroy(): void {
    this.#stream.destroy();
  }

  reset(): void {
    abortStream(this.#stream);
  }
}
