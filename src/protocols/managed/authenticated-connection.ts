import type { Duplex } from "node:stream";
import type { WorkerConnection } from "#core/accepted.ts";
import type { InboundEnv } from "#core/inbound.ts";
import type { DatagramFlow, Destination, Metadata, Network, Session } from "#core/session.ts";
import { abortStream } from "#core/stream.ts";
import { type ConnectionEnds, describe, guardErrors, streamSession } from "#net/listen/accept.ts";
import { AcceptedSession, type DialReply } from "#net/listen/accepted-session.ts";
import type { PendingClient } from "#net/listen/first-bytes.ts";
import { OpenedSession, type ClientStream, type KeptClient } from "#net/listen/opened-session.ts";
import type { LiveUsers } from "#protocols/live-users.ts";
import { acceptMux } from "#protocols/mux/inbound.ts";
import { MuxServer } from "#protocols/shared/mux-cool-server.ts";
import { acceptUdpOverTcp } from "#protocols/udp-over-tcp/index.ts";
import type { MuxServerOptions } from "#transport/mux/fields.ts";

export interface AuthenticationContext {
  readonly env: InboundEnv;
  readonly live: LiveUsers;
  /** API spelling. */
  readonly type: string;
  readonly user: string | null;
  readonly ends: ConnectionEnds;
}

/** Answers the client: null for success. Only the first call counts. */
type Reply = (failure: Error | null) => void;

/** One authenticated connection: every session of managed users is made here. The methods may be passed on unbound. */
export class AuthenticatedConnection {
  readonly #context: AuthenticationContext;

  constructor(context: AuthenticationContext) {
    this.#context = context;
  }

  /** `end` runs when the user is removed. Dispose it when the session has ended by itself. */
  hold(end: () => void): Disposable {
    return this.#context.live.add(this.#context.user, end);
  }

  /** Both end with the user, and as a fault: what was cut off must not look complete. `wire` lies below the stream. */
  holdStream(stream: Duplex, wire: Duplex): void {
    guardErrors(stream);
    const held = this.hold(() => {
      abortStream(wire);
      stream.destroy();
    });
    stream.once("close", () => held[Symbol.dispose]());
  }

  /** The only session of a client in a protocol without an answer to a dial. It ends with the user. */
  serve(client: PendingClient, opened: ClientStream, to: Destination): void {
    if (isKept(client) && opened.wire !== null) {
      const hold = (end: () => void): Disposable => this.hold(end);
      return this.#accept(new OpenedSession(this.#about("tcp", to), client, opened, hold));
    }
    this.onSilentStream(this.openStream(client, opened), to);
  }

  /** The client's stream. It ends with the user. */
  openStream({ stream: below }: PendingClient, opened: ClientStream): Duplex {
    const stream = opened.open(below);
    this.holdStream(stream, below);
    return stream;
  }

  readonly onStream = (stream: Duplex, to: Destination, reply: Reply): void => {
    guardErrors(stream);
    this.#accept(streamSession(this.#about("tcp", to), stream, reply));
  };

  /** For protocols without an answer to a dial: success is the first byte, failure the end. */
  readonly onSilentStream = (stream: Duplex, to: Destination): void => {
    this.onStream(stream, to, (failure) => void (failure !== null && stream.destroy()));
  };

  /** A stream of a session that a worker reads. */
  onKeptStream(stream: WorkerConnection, to: Destination, reply: DialReply): void {
    this.#accept(new AcceptedSession(this.#about("tcp", to), stream, reply));
  }

  readonly onFlow = (flow: DatagramFlow, first: Destination): void => {
    this.#accept({ network: "udp", metadata: this.#about("udp", first), flow });
  };

  /** For a stream whose destination was the name of `mux`. */
  serveMux(
    stream: Duplex,
    options: MuxServerOptions | undefined,
    onStream: AuthenticatedConnection["onStream"],
  ): void {
    acceptMux(stream, { options, onStream, onFlow: this.onFlow, log: this.#context.env.log });
  }

  /** For a stream that was asked for by the name of mux.cool, or by a command of its own. */
  serveMuxCool(stream: Duplex, datagramsOnly = false): void {
    const { onFlow, onSilentStream: onStream } = this;
    new MuxServer(stream, { datagramsOnly, onFlow, onStream, log: this.#context.env.log });
  }

  /** For a stream whose destination was a name of UDP over TCP. */
  serveUdpOverTcp(stream: Duplex, version: 1 | 2): void {
    void acceptUdpOverTcp(stream, version, (to) => this.#about("udp", to), this.#accept);
  }

  /** All that this connection starts passes here. */
  readonly #accept = (session: Session): void => this.#context.env.accept(session);

  #about(network: Network, destination: Destination): Metadata {
    const { env, ends, type, user } = this.#context;
    return describe(env, ends, { network, type, user, destination }, true);
  }
}

function isKept(client: PendingClient): client is KeptClient {
  return client.connection !== undefined && client.connection.worker !== null;
}
