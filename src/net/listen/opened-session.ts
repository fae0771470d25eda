import type { Duplex } from "node:stream";
import type { AcceptedConnection, ClientWire } from "#core/accepted.ts";
import type { Metadata, OffloadedClient, StreamSession } from "#core/session.ts";
import { guardErrors } from "./accept.ts";
import { type PendingClient, readAll } from "./first-bytes.ts";

/** What lies over the socket of a client that has said what it wants, for the one who goes on with it. */
export interface ClientStream {
  /** By the event loop; at most once. */
  open(below: Duplex): Duplex;
  /** By a worker, after which `open` may still be called: its dial may fail. Null: by none. */
  readonly wire: ClientWire | null;
  /** What is payload in the first bytes behind the handshake, as far as it can be told; they are read once more. */
  ahead(shown: Buffer): Uint8Array;
}

/** Looking at its stream takes the socket from the worker. */
export interface KeptClient extends PendingClient {
  readonly connection: AcceptedConnection;
}

const NOTHING = Buffer.alloc(0);

/** What lies over the socket of a client whose bytes come in frames, or bare. */
export function overFrames({ frames }: PendingClient, wire: ClientWire): ClientWire {
  return frames === undefined ? wire : { ...wire, begin: () => frames.over(wire.begin()) };
}

/**
 * The session of a client whose socket a worker has, in a protocol without an answer to a dial: success is the first byte,
 * failure the end.
 */
export class OpenedSession implements StreamSession {
  readonly network = "tcp";
  readonly metadata: Metadata;
  readonly ended: () => void;
  readonly #client: KeptClient;
  readonly #held: HeldClient;
  readonly #opened: ClientStream;

  /** `hold` has a call end the connection, until what it returns is disposed of. */
  constructor(
    metadata: Metadata,
    client: KeptClient,
    opened: ClientStream,
    hold: (end: () => void) => Disposable,
  ) {
    const own = new HeldClient(client.connection);
    this.metadata = metadata;
    this.#client = client;
    this.#held = own;
    this.#opened = opened;
    const held = hold(() => own.end());
    this.ended = () => held[Symbol.dispose](); // kept to the end, when the rest has long gone
  }

  get offloaded(): OffloadedClient | null {
    const { worker } = this.#client.connection;
    const { wire } = this.#opened;
    if (worker === null || wire === null) return null;
    return { worker, success: NOTHING, wire: overFrames(this.#client, wire) };
  }

  get stream(): Duplex {
    return this.#held.stream ?? this.#open();
  }

  #open(): Duplex {
    const stream = this.#opened.open(this.#client.stream);
    guardErrors(stream);
    this.#held.stream = stream;
    return stream;
  }

  reply(failure: Error | null): void {
    if (failure === null) return;
    readAll(this.#client);
    this.stream.destroy();
  }
}

/** All that has to be known of a client to end it. */
class HeldClient {
  readonly connection: AcceptedConnection;
  /** Null: a worker has the socket. */
  stream: Duplex | null = null;

  constructor(connection: AcceptedConnection) {
    this.connection = connection;
  }

  /** As a fault: what was cut off must not look complete. */
  end(): void {
    this.connection.reset();
    this.stream?.destroy();
  }
}
