/** An HTTP/2 connection whose worker reads its frames: each of its streams is a client whose first bytes the worker shows. */
import { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";
import type {
  AcceptedConnection,
  ClientWire,
  Followed,
  SessionObserver,
  WorkerConnection,
} from "#core/accepted.ts";
import type { Secured } from "#transport/security.ts";
import { CLIENT_PREFACE } from "./frames.ts";
import type { Http2Tunnels } from "#core/wire-details.ts";

/**
 * Streams that may be taken from the worker before any of them has authenticated: each costs two descriptors. Clients that say
 * all of their handshake at once need none.
 */
const MOST_TAKEN_BEFORE = 16;

/** Nothing lies over what the worker has. */
const BARE: ClientWire = { begin: () => ({ kind: "plain", numbers: [], unread: null, layers: [] }) };

/** False: the client has said something else, or not enough, or its worker cannot: nothing was taken of it. */
export function keepHttp2(kept: Secured, tunnels: Http2Tunnels, on: (carried: Secured) => void): boolean {
  const worker = kept.connection?.worker ?? null;
  worker?.understood(0); // the preface is read once more
  const begins = worker?.request?.subarray(0, CLIENT_PREFACE.length).equals(CLIENT_PREFACE) === true;
  const { alpn, serverName } = kept; // not to be had once the worker goes on
  if (worker === null || !begins || (alpn !== null && alpn !== "h2")) return false;
  const { grpcServiceName, h2, streamOne } = tunnels; // and nothing that cannot be copied to a thread
  const { observer } = new KeptConnection(worker, { alpn, serverName }, on);
  return worker.openSession({ frames: "http2", tunnels: { grpcServiceName, h2, streamOne } }, observer, BARE);
}

class KeptConnection extends EventEmitter implements Followed {
  closed = false;
  readonly facts: Pick<Secured, "alpn" | "serverName">;
  readonly #worker: WorkerConnection;
  readonly observer: SessionObserver;
  #isAuthenticated = false;
  #taken = 0;

  constructor(
    worker: WorkerConnection,
    facts: Pick<Secured, "alpn" | "serverName">,
    on: (carried: Secured) => void,
  ) {
    super();
    this.#worker = worker;
    this.facts = facts;
    this.observer = {
      onStream: (stream: WorkerConnection): void => on(new KeptTunnel(this, stream)),
      onEnded: (): void => {
        this.closed = true;
        this.emit("close");
      },
      followed: this,
    };
  }

  destroy(): void {
    this.#worker.reset();
  }

  authenticated(): void {
    this.#isAuthenticated = true;
  }

  /** One more stream is taken from the worker. False: it may not be. */
  take(): boolean {
    return this.#isAuthenticated || ++this.#taken <= MOST_TAKEN_BEFORE;
  }
}

/** One of its streams. Looking at `stream` takes it from the worker. */
class KeptTunnel implements Secured {
  readonly bypass = null;
  readonly connection: AcceptedConnection;
  readonly #of: KeptConnection;
  #isTaken = false;

  constructor(of: KeptConnection, connection: AcceptedConnection) {
    this.#of = of;
    this.connection = connection;
  }

  get alpn(): string | null {
    return this.#of.facts.alpn;
  }

  get serverName(): string | null {
    return this.#of.facts.serverName;
  }

  get stream(): Duplex {
    if (!this.#isTaken && !this.#of.take()) this.connection.reset();
    this.#isTaken = true;
    return this.connection.stream();
  }

  onAuthenticated(): void {
    this.#of.authenticated();
  }
}
