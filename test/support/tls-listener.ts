/** A TLS listener whose clients shake hands with workers, and the same by the event loop. */
import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { TlsContextSource } from "#core/tls-contexts.ts";
import type { AcceptOffload } from "#net/listen/accept-offload.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import type { TlsAccepted, TlsServer } from "#core/tls.ts";

export interface TlsListener extends AsyncDisposable {
  readonly port: number;
  /** In the order in which they came: of clients whose handshake a thread has at least begun, and of others. */
  readonly tlsAccepted: readonly AcceptedConnection[];
  readonly sockets: readonly Duplex[];
  readonly accepted: readonly TlsAccepted[];
  readonly failures: readonly Error[];
  /** From now on by these threads; null: by the event loop. */
  useThreads(threads: AcceptOffload | null): void;
  /** Gives the port up; another holder at the same moment goes on. */
  release(): Promise<void>;
}

export interface TlsListenerOptions {
  readonly bypassable?: boolean;
  readonly port?: number;
  readonly pool?: SocketPool;
  /** What threads are told of contexts; those of the server by default. */
  readonly contexts?: TlsContextSource;
}

/** Where it listens, by default. */
export const TLS_LISTENER = { ip: LOOPBACK_V4, port: 0, owner: "test" } as const;

/** Echoes what a client says. `threads` null: it accepts by itself, without a pool. */
export async function openTlsListener(
  tls: TlsServer,
  threads: AcceptOffload | null,
  { bypassable = false, port = 0, pool = new SocketPool(), contexts = tls.contexts }: TlsListenerOptions = {},
): Promise<TlsListener> {
  const tlsAccepted: AcceptedConnection[] = [];
  const sockets: Duplex[] = [];
  const accepted: TlsAccepted[] = [];
  const failures: Error[] = [];
  const onAccepted = (connection: AcceptedConnection): void => {
    if (connection.tls !== null) tlsAccepted.push(connection);
    else sockets.push(connection.stream());
    void tls.acceptConnection(connection, { bypassable }).then(
      (one) => {
        accepted.push(one);
        one.stream.on("error", () => one.stream.destroy());
        one.stream.pipe(one.stream);
      },
      (error: Error) => void failures.push(error),
    );
  };
  pool.useThreads(threads);
  const where = { ...TLS_LISTENER, port };
  const lease = await pool.leaseTcp(where, { handshake: "tls", contexts, probes: null, onAccepted });
  lease.activate();
  const release = async (): Promise<void> => lease[Symbol.asyncDispose]();
  return {
    port: lease.endpoint.port,
    tlsAccepted,
    sockets,
    accepted,
    failures,
    useThreads: (next) => pool.useThreads(next),
    release,
    async [Symbol.asyncDispose]() {
      await release();
      pool.cutOff();
    },
  };
}

/** What is shared of contexts, and what of it has been released. */
export class CountedContexts implements TlsContextSource {
  shared = 0;
  released = 0;
  readonly #source: TlsContextSource;

  constructor(source: TlsContextSource) {
    this.#source = source;
  }

  share(onAlpn: bigint): ReturnType<TlsContextSource["share"]> {
    const context = this.#source.share(onAlpn);
    if (context === null) return null;
    this.shared++;
    return {
      address: context.address,
      release: () => {
        this.released++;
        context.release();
      },
    };
  }

  watch(onChange: () => void): Disposable {
    return this.#source.watch(onChange);
  }
}
