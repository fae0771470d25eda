/** The dialling side of QUIC on a path for datagrams: the connection, its clock, and what waits for it. */
import { DialError } from "#core/errors.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { Connection } from "./connection.ts";
import { ConnectionClock } from "./connection-clock.ts";
import type { ConnectionOptions } from "./connection-options.ts";
import type { PacketFilter } from "./packet-filter.ts";
import { ECT0 } from "./recovery/ecn-counts.ts";
import type { QuicStream } from "./streams/quic-stream.ts";

const SILENT_PROBES = 3;
/** So long the last packets of a connection that retires have for being acknowledged. */
const LAST_MS = 25;

export interface QuicClientOptions extends ConnectionOptions {
  /** Named in errors. */
  readonly node: string;
  /** Owned from here on. */
  readonly flow: DatagramFlow;
  readonly server: Destination;
  /** It is open as soon as something can be said by 0-RTT, which may arrive twice; absent: when the handshake is done. */
  readonly startsEarly?: boolean;
  /** Null: datagrams go as they are. */
  readonly filter: PacketFilter | null;
  /** Lent payloads. */
  readonly onDatagram: (payload: Uint8Array) => void;
  readonly onStream: (stream: QuicStream) => void;
}

export class QuicClient implements AsyncDisposable {
  readonly connection: Connection;
  /** Settles when the connection is over, however that came; null: by us. */
  readonly closed: Promise<Error | null>;
  readonly #options: QuicClientOptions;
  readonly #connected = Promise.withResolvers<void>();
  #close: (error: Error | null) => void = () => {};
  /** What is being sent; the same object each time. */
  readonly #outgoing: { payload: Uint8Array; destination: Destination; ecn: number };
  readonly #sendSealed = (datagram: Uint8Array, flow: DatagramFlow): void => {
    this.#outgoing.payload = datagram;
    flow.send(this.#outgoing);
  };
  #retiring: { readonly code: number; readonly hasFlows: () => boolean } | null = null;
  readonly #clock = new ConnectionClock(() => this.connection);

  /** Settles when the handshake is done. Throws `DialError`; the flow is closed then. */
  static async open(options: QuicClientOptions, signal: AbortSignal): Promise<QuicClient> {
    const client = new QuicClient(options);
    const onAbort = (): void => client.#abort(new DialError("aborted", `${options.node}: aborted`));
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      if (signal.aborted) onAbort();
      await client.#connected.promise;
      return client;
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      if (reason instanceof DialError) throw reason;
      throw new DialError("failed", `${options.node}: QUIC: ${reason.message}`, { cause: reason });
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  private constructor(options: QuicClientOptions) {
    const { flow } = options;
    this.#options = options;
    this.#outgoing = { payload: new Uint8Array(0), destination: options.server, ecn: 0 };
    const { promise, resolve } = Promise.withResolvers<Error | null>();
    this.closed = promise;
    this.#close = resolve;
    this.#connected.promise.catch(() => {}); // who dials hears of it
    const overhead = options.filter?.overheadBytes ?? 0;
    const most = (options.mostDatagramBytes ?? 1452) - overhead;
    this.connection = new Connection(
      { ...options, mostDatagramBytes: most, usesEcn: options.filter === null && flow.useEcn?.() === true },
      {
        send: (datagram, { isMarked }) => this.#send(datagram, isMarked),
        ...(options.filter === null && flow.sendRun !== undefined
          ? { sendRun: (datagrams, size, { isMarked }) => this.#sendRun(datagrams, size, isMarked) }
          : {}),
        wake: () => this.#clock.wake(),
        connected: () => this.#connected.resolve(),
        stream: options.onStream,
        idle: () => this.flowEnded(),
        datagram: options.onDatagram,
        ownId: () => {}, // this path has no other connection
        moved() {}, // servers stay where they are
        closed: (error) => this.#closed(error),
      },
      null,
      performance.now(),
    );
    flow.receive(({ payload, ecn }) => this.#receive(payload, ecn));
    flow.closed.then(
      () => this.#abort(new Error("the path for datagrams has ended")),
      (error: unknown) => this.#abort(error instanceof Error ? error : new Error(String(error))),
    );
    this.connection.begin();
    if (options.startsEarly === true && this.connection.isEarly) this.#connected.resolve();
    this.#clock.wake();
  }

  /** From now on datagrams go to this port; the connection does not notice. */
  setPort(port: number): void {
    this.#outgoing.destination = { ...this.#outgoing.destination, port };
  }

  /** The server was asked for signs of life again and again, and gave none: what is new had better go by another connection. */
  get isSilent(): boolean {
    return this.connection.unansweredProbes >= SILENT_PROBES;
  }

  /**
   * Closes as soon as no stream of both directions is open, and `hasFlows` says that there are no flows of datagrams, of
   * which each has to tell its end by `flowEnded`.
   */
  retire(code: number, hasFlows: () => boolean = () => false): void {
    this.#retiring = { code, hasFlows };
    if (this.#isUnused) this.close(code);
  }

  /** A flow of datagrams, or the last stream, has ended. */
  flowEnded(): void {
    if (this.#isUnused) setTimeout(() => this.#closeUnused(), LAST_MS);
  }

  get #isUnused(): boolean {
    const { isClosed, bidiStreams } = this.connection;
    return !isClosed && bidiStreams === 0 && this.#retiring?.hasFlows() === false;
  }

  #closeUnused(): void {
    if (this.#retiring !== null && this.#isUnused) this.close(this.#retiring.code);
  }

  #send(datagram: Uint8Array, isMarked: boolean): void {
    const { filter, flow } = this.#options;
    this.#outgoing.ecn = isMarked ? ECT0 : 0;
    if (filter !== null) return filter.seal(datagram, flow, this.#sendSealed);
    this.#outgoing.payload = datagram;
    flow.send(this.#outgoing);
  }

  #sendRun(datagrams: Uint8Array, size: number, isMarked: boolean): void {
    this.#outgoing.ecn = isMarked ? ECT0 : 0;
    this.#outgoing.payload = datagrams;
    this.#options.flow.sendRun?.(this.#outgoing, size);
  }

  #receive(payload: Uint8Array, ecn = 0): void {
    const { filter } = this.#options;
    const datagram = filter === null ? payload : filter.open(payload, null);
    if (datagram === null) return;
    this.connection.receive(datagram, this.#clock.nowMs, null, ecn);
    this.#clock.wake();
  }

  #abort(error: Error): void {
    this.#connected.reject(error);
    this.connection.close(0, "", error);
  }

  #closed(error: Error | null): void {
    this.#clock.stop();
    this.#connected.reject(error ?? new Error("the connection was closed"));
    this.#close(error);
    void this.#options.flow[Symbol.asyncDispose]();
  }

  /** Says the end; streams that are open are destroyed. `code`: of the application. */
  close(code: number): void {
    this.connection.close(code, "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close(0);
  }
}
