import type { Duplex } from "node:stream";
import type { ClientWire, WorkerConnection } from "#core/accepted.ts";
import type { InboundEnv } from "#core/inbound.ts";
import type { DatagramFlow, Destination, Metadata, Network, Session } from "#core/session.ts";
import { abortStream } from "#core/stream.ts";
import type { ClientSession } from "#core/wire-details.ts";
import { type ConnectionEnds, describe, guardErrors, streamSession } from "#net/listen/accept.ts";
import { AcceptedSession, type DialReply } from "#net/listen/accepted-session.ts";
import type { PendingClient } from "#net/listen/first-bytes.ts";
import { OpenedSession, overFrames, type ClientStream, type KeptClient } from "#net/listen/opened-session.ts";
import type { LiveUsers } from "#protocols/live-users.ts";
import { acceptMux } from "#protocols/mux/inbound.ts";
import { acceptKeptMux, keptMux } from "#protocols/mux/kept-session.ts";
import { MuxServer } from "#protocols/shared/mux-cool-server.ts";
import { acceptUdpOverTcp, versionOf } from "#protocols/udp-over-tcp/index.ts";
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

  /** A session whose frames a worker reads, over such a wire. It ends with the user. False: the event loop has to read them. */
  keepSession(
    client: PendingClient,
    session: ClientSession,
    wire: ClientWire,
    onStream: (stream: WorkerConnection) => void,
  ): boolean {
    const worker = client.connection?.worker ?? null;
    if (worker === null) return false;
    const onEnded = (): void => held[Symbol.dispose]();
    if (!worker.openSession(session, { onStream, onEnded }, overFrames(client, wire))) return false;
    const held = this.hold(() => worker.reset());
    return true;
  }

  /** A stream of a session that a worker reads. `mayBeUdp`: it leads to a name of UDP over TCP, perhaps. */
  serveKeptStream(stream: WorkerConnection, to: Destination, reply: DialReply, mayBeUdp: boolean): void {
    const version = mayBeUdp ? versionOf(to) : null;
    if (version === null) return this.#accept(new AcceptedSession(this.#about("tcp", to), stream, reply));
    const taken = stream.stream();
    taken.write(reply.success);
    this.serveUdpOverTcp(taken, version);
  }

  readonly onFlow = (flow: DatagramFlow, first: Destination): void => {
    this.#accept({ network: "udp", metadata: this.#about("udp", first), flow });
  };

  /** For a client whose destination was the name of `mux`. `mayBeUdp`: as of `serveKeptStream`. */
  serveMuxClient(
    client: PendingClient,
    opened: ClientStream,
    options: MuxServerOptions | undefined,
    mayBeUdp = false,
  ): void {
    const { wire } = opened;
    const session = wire === null ? null : keptMux(client, opened, options);
    const isKept = wire !== null && session !== null && this.#keepMux(client, session, wire, mayBeUdp);
    if (isKept) return;
    const onStream = mayBeUdp ? this.#onStreamOrUdp : this.onStream;
    this.serveMux(this.openStream(client, opened), options, onStream);
  }

  #keepMux(client: PendingClient, session: ClientSession, wire: ClientWire, mayBeUdp: boolean): boolean {
    const onStream = (stream: WorkerConnection, to: Destination, reply: DialReply): void =>
      this.serveKeptStream(stream, to, reply, mayBeUdp);
    const context = { onStream, onFlow: this.onFlow, log: this.#context.env.log };
    return this.keepSession(client, session, wire, (stream) => acceptKeptMux(stream, context));
  }

  readonly #onStreamOrUdp = (stream: Duplex, to: Destination, reply: Reply): void => {
    const version = versionOf(to);
    if (version === null) return this.onStream(stream, to, reply);
    reply(null);
    this.serveUdpOverTcp(stream, version);
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
