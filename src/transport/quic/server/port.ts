/** The QUIC endpoints of one UDP socket: a listener that is opened anew takes new clients, and those of the one before stay. */
import type { DatagramListener } from "#core/sockets.ts";
import type { ThreadedServer } from "#transport/quic/remote/quic-thread.ts";
import type { QuicThreads } from "#transport/quic/remote/quic-threads.ts";
import { QuicEndpoint, type QuicServerOptions } from "./endpoint.ts";
import { InitialSieve } from "./initial-sieve.ts";
import { ServerSecrets } from "./secrets.ts";

/** Kept with the host. */
export class QuicPorts {
  readonly #secrets: ServerSecrets;
  readonly #ports = new WeakMap<DatagramListener, QuicPort>();

  constructor(secrets = new ServerSecrets()) {
    this.#secrets = secrets;
  }

  /** From now on new clients of the socket are the listener's, in the threads where there are some. */
  serve(
    socket: DatagramListener,
    options: QuicServerOptions,
    threads: QuicThreads | null,
    threaded: ThreadedServer,
  ): void {
    const behindThreads = (): void => {
      socket.sieve?.(null); // of the thread that has had it
      this.open(socket, options);
    };
    const isRemote = !this.#ports.has(socket) && threads?.listen(socket, threaded, behindThreads) === true;
    if (!isRemote) this.open(socket, options);
  }

  /** The same, here. */
  open(socket: DatagramListener, options: QuicServerOptions): QuicEndpoint {
    let port = this.#ports.get(socket);
    if (port === undefined) this.#ports.set(socket, (port = new QuicPort(socket)));
    // A filter makes other datagrams of those, which have no marks.
    const usesEcn = port.usesEcn && options.filter === null;
    const endpoint = new QuicEndpoint(socket, this.#secrets, port.sieve, { ...options, usesEcn });
    port.add(endpoint);
    return endpoint;
  }
}

class QuicPort {
  readonly #socket: DatagramListener;
  readonly sieve: InitialSieve;
  readonly usesEcn: boolean;
  /** The newest first. */
  #endpoints: readonly QuicEndpoint[] = [];

  constructor(socket: DatagramListener) {
    this.#socket = socket;
    this.usesEcn = socket.useEcn?.() ?? false;
    this.sieve = new InitialSieve((program) => socket.sieve?.(program) ?? false);
    socket.beforeClose(() => {
      this.sieve.close();
      for (const endpoint of this.#endpoints) endpoint.close();
    });
  }

  add(endpoint: QuicEndpoint): void {
    this.#endpoints = [endpoint, ...this.#endpoints];
    for (const old of this.#endpoints.slice(1)) old.whenEmpty(() => this.#remove(old));
    const isOlder = (one: QuicEndpoint): boolean => one !== endpoint;
    this.#socket.receive(
      (payload, from, ecn) => {
        for (const one of this.#endpoints) if (isOlder(one) && one.take(payload, from, ecn, false)) return;
        endpoint.take(payload, from, ecn, true);
      },
      (payload) =>
        endpoint.refuses(payload) && !this.#endpoints.some((one) => isOlder(one) && one.mayKnow(payload)),
    );
  }

  #remove(endpoint: QuicEndpoint): void {
    this.#endpoints = this.#endpoints.filter((one) => one !== endpoint);
  }
}
