/** A TLS listener whose clients shake hands with relay threads, and the same by the event loop. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ContextSource, ShakenClient } from "#core/held.ts";
import type { FrontThreads } from "#net/front-threads.ts";
import { LOOPBACK_V4 } from "#net/ip.ts";
import { SocketPool } from "#net/socket-pool.ts";
import type { TlsAccepted, TlsServer } from "#transport/tls/server.ts";

export interface TlsListener extends AsyncDisposable {
  readonly port: number;
  /** In the order in which they came: of clients whose handshake a thread has at least begun, and of others. */
  readonly shaken: readonly ShakenClient[];
  readonly sockets: readonly Socket[];
  readonly accepted: readonly TlsAccepted[];
  readonly failures: readonly Error[];
  /** From now on by these threads; null: by the event loop. */
  useThreads(threads: FrontThreads | null): void;
  /** Gives the port up; who has it at the same moment goes on. */
  release(): Promise<void>;
}

export interface TlsListenerOptions {
  readonly bypassable?: boolean;
  readonly port?: number;
  readonly pool?: SocketPool;
  /** What threads are told of contexts; those of the server by default. */
  readonly contexts?: ContextSource;
}

/** Echoes what a client says. `threads` null: it accepts by itself, without a pool. */
export async function openTlsListener(
  tls: TlsServer,
  threads: FrontThreads | null,
  { bypassable = false, port = 0, pool = new SocketPool(), contexts = tls.contexts }: TlsListenerOptions = {},
): Promise<TlsListener> {
  const shaken: ShakenClient[] = [];
  const sockets: Socket[] = [];
  const accepted: TlsAccepted[] = [];
  const failures: Error[] = [];
  const serve = (client: Duplex | ShakenClient): void =>
    void tls.accept(client, { bypassable }).then(
      (one) => {
        accepted.push(one);
        one.stream.on("error", () => one.stream.destroy());
        one.stream.pipe(one.stream);
      },
      (error: Error) => void failures.push(error),
    );
  const onSocket = (socket: Socket): void => {
    sockets.push(socket.on("error", () => {}));
    serve(socket);
  };
  const on = (client: ShakenClient): void => {
    shaken.push(client);
    serve(client);
  };
  pool.useThreads(threads);
  const where = { ip: LOOPBACK_V4, port, owner: "test" };
  const lease = await pool.leaseTcp(where, onSocket, { handshake: "tls", contexts, probes: null, on });
  lease.activate();
  const release = async (): Promise<void> => lease[Symbol.asyncDispose]();
  return {
    port: lease.endpoint.port,
    shaken,
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
export class CountedContexts implements ContextSource {
  shared = 0;
  released = 0;
  readonly #source: ContextSource;

  constructor(source: ContextSource) {
    this.#source = source;
  }

  share(onAlpn: bigint): ReturnType<ContextSource["share"]> {
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
