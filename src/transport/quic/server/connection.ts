/** One client of a server: its connection, its clock, and its time after the end. */
import type { Endpoint } from "#core/endpoint.ts";
import { type CongestionChoice, makeCongestion } from "#transport/quic/congestion/choice.ts";
import type { Congestion } from "#transport/quic/congestion/congestion.ts";
import { Connection } from "#transport/quic/connection.ts";
import { ConnectionClock } from "#transport/quic/connection-clock.ts";
import type { ConnectionOptions, ServerStart } from "#transport/quic/connection-options.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";

/** A handshake that takes longer is given up. */
const HANDSHAKE_MS = 10_000;
/** So many probe timeouts after its end a connection is still known, for packets that come late (RFC 9000 §10.2). */
const CLOSING_PROBES = 3;

/** What an open stream holds besides its bytes, here and in the thread that serves it. Measured, rounded up. */
const STREAM_BYTES = 8 * 1024;

/** What the owner of a connection does with what comes. None of it may throw. */
export interface QuicServerEvents {
  /** Called where it was made before the handshake was done, when that is. */
  onConnected?(): void;
  /** The client has opened a stream, which is the receiver's. */
  onStream(stream: QuicStream): void;
  /** The payload is lent until the call returns. */
  onDatagram(payload: Uint8Array): void;
}

/** What a connection asks of its endpoint. */
export interface ServerConnectionHost {
  readonly local: Endpoint;
  /** `isMarked`: with ECT(0). */
  send(datagram: Uint8Array, to: Endpoint, isMarked: boolean): void;
  /** As of `SendDatagrams`; absent: each is sent by itself. */
  readonly sendRun?: (datagrams: Uint8Array, size: number, to: Endpoint, isMarked: boolean) => void;
  onId(connection: QuicServerConnection, id: Uint8Array, isGiven: boolean): void;
  /** Its handshake is done. */
  onConnected(connection: QuicServerConnection): void;
  /** What takes its streams; asked for once. */
  eventsOf(connection: QuicServerConnection): QuicServerEvents;
  /** It is over, and may be forgotten when no more can come for it. */
  onForgotten(connection: QuicServerConnection): void;
  /** It makes us hold so many bytes more; negative: fewer. */
  onGrown(connection: QuicServerConnection, bytes: number): void;
  /** It has shown who it is. */
  onSettled(connection: QuicServerConnection): void;
}

export class QuicServerConnection {
  readonly connection: Connection;
  /** Settles when the connection is over, however that came; null: by us. */
  readonly closed: Promise<Error | null>;
  /** The handshake is done. */
  isConnected = false;
  /** What was agreed on; null: the handshake is not done. */
  alpn: string | null = null;
  /** `settle` was called. */
  isSettled = false;
  isForgotten = false;
  readonly #host: ServerConnectionHost;
  readonly #first: Endpoint;
  readonly #clock = new ConnectionClock(() => this.connection);
  #makeCongestion: () => Congestion;
  #events: QuicServerEvents | null = null;
  #settleClosed: (error: Error | null) => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #isOpen = false;

  constructor(
    host: ServerConnectionHost,
    options: Omit<ConnectionOptions, "congestion">,
    start: ServerStart & { readonly from: Endpoint },
    makeCongestion: () => Congestion,
  ) {
    const { sendRun } = host;
    this.#host = host;
    this.#first = start.from;
    this.#makeCongestion = makeCongestion;
    const { promise, resolve } = Promise.withResolvers<Error | null>();
    this.closed = promise;
    this.#settleClosed = resolve;
    this.connection = new Connection(
      { ...options, congestion: makeCongestion() },
      {
        send: (datagram, { peer, isMarked }) => host.send(datagram, peer ?? this.#first, isMarked),
        ...(sendRun === undefined
          ? {}
          : {
              sendRun: (datagrams, size, { peer, isMarked }) =>
                sendRun(datagrams, size, peer ?? this.#first, isMarked),
            }),
        wake: () => this.#clock.wake(),
        early: (alpn) => this.#onEarly(alpn),
        connected: (alpn) => this.#onConnected(alpn),
        stream: (stream) => this.#onStream(stream),
        datagram: (payload) => this.#events?.onDatagram(payload),
        idle() {},
        ownId: (id, isGiven) => this.#isOpen && host.onId(this, id, isGiven),
        moved: () => this.connection.setCongestion(this.#makeCongestion()),
        closed: (error) => this.#onClosed(error),
      },
      start,
      performance.now(),
    );
    this.#isOpen = true; // nothing is left of one that could not be opened
    host.onId(this, this.connection.firstId, true);
    this.#timer = setTimeout(() => this.connection.close(0, ""), HANDSHAKE_MS);
    this.#timer.unref();
  }

  /** Where the client is now. */
  get peer(): Endpoint {
    return this.connection.peer ?? this.#first;
  }

  /** The listening side's own address. */
  get local(): Endpoint {
    return this.#host.local;
  }

  /** From now on with this congestion control, and with another one of it where the client moves to another host. */
  useCongestion(choice: CongestionChoice): void {
    this.#makeCongestion = () => makeCongestion(choice);
    this.connection.setCongestion(this.#makeCongestion());
  }

  /** Until the client has shown who it is: it makes us hold so many bytes more; negative: fewer. */
  grow(bytes: number): void {
    this.#host.onGrown(this, bytes);
  }

  /**
   * The client has shown who it is: it is not among those any more that give way to others, and TLS is let go of. To be
   * called when nothing is exported from it any more.
   */
  settle(): void {
    this.isSettled = true;
    this.connection.releaseTls();
    this.#host.onSettled(this);
  }

  /** `ecn`: as of `Datagram`. */
  receive(datagram: Uint8Array, from: Endpoint, ecn: number): void {
    this.connection.receive(datagram, this.#clock.nowMs, from, ecn);
    this.#clock.wake();
  }

  /** Nothing of the client was authentic. */
  discard(): void {
    this.connection.discard();
  }

  #onStream(stream: QuicStream): void {
    if (!this.isSettled) {
      this.grow(STREAM_BYTES);
      stream.once("close", () => this.grow(-STREAM_BYTES));
    }
    this.#events?.onStream(stream);
  }

  #onConnected(alpn: string | null): void {
    this.isConnected = true;
    this.alpn = alpn;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#host.onConnected(this);
    if (this.#events === null) this.#events = this.#host.eventsOf(this);
    else this.#events.onConnected?.();
  }

  #onEarly(alpn: string | null): void {
    this.alpn = alpn;
    this.#events = this.#host.eventsOf(this);
  }

  #onClosed(error: Error | null): void {
    clearTimeout(this.#timer);
    this.#clock.stop();
    this.#events = null;
    this.#settleClosed(error);
    // A client that has not finished the handshake begins anew with its next packet.
    if (!this.isConnected) return this.forget();
    this.#timer = setTimeout(() => this.forget(), CLOSING_PROBES * this.connection.probeMs);
    this.#timer.unref();
  }

  forget(): void {
    if (this.isForgotten) return;
    this.isForgotten = true;
    clearTimeout(this.#timer);
    this.connection.forget();
    this.#host.onForgotten(this);
  }
}
