/** Clients whose sockets a relay thread has accepted and holds, until the main thread has decided about them. */
import type { Duplex } from "node:stream";
import type { DialError } from "./errors.ts";
import type { Endpoint, Ip } from "./session.ts";
import type { StreamSocket } from "./sockets.ts";

/**
 * How a thread may find out by itself where a client wants to go: by reading a request; `none`: there is no handshake, the
 * destination is known; `redirected`: there is none either, and the kernel's connection tracking knows it.
 */
export type PlainHandshake = "mixed" | "socks" | "http" | "none" | "redirected";

/** One connection by an ordinary kernel socket. */
export interface DialPlan {
  readonly ip: Ip;
  readonly port: number;
  /** SO_MARK; 0: none. */
  readonly routingMark: number;
  /** SO_BINDTODEVICE; empty: none. */
  readonly interfaceName: string;
  /** Null: the peer is not probed. */
  readonly probes: { readonly idleMs: number; readonly intervalMs: number } | null;
  readonly timeoutMs: number;
  /** There are more addresses to try where this one does not answer in time. */
  readonly isFirstOfMany: boolean;
}

/** Called with the progress of a dial, in this order, each at most once. */
export interface DialEvents {
  /** Connected, and the client has its success reply. Bytes may have moved. */
  dialled(): void;
  /** The client waits to be taken. */
  failed(error: DialError): void;
  /** The client's connection is over and everything of it is freed. */
  ended(): void;
}

/** The near end of what was dialled for a client. */
export interface LocalEnd extends Endpoint {
  /** Of its socket; the thread's. */
  readonly descriptor: number;
}

/**
 * An answer for all clients of one listener that come from the same address with the same request, valid for a second
 * or until it is invalidated: a worker dials by it without asking, and reports which connections it served. None of
 * these throws.
 */
export interface CachedRoute {
  /** One has come and gone, and was connected; so many bytes were handed on. */
  served(source: Endpoint, uploadBytes: number, downloadBytes: number): void;
  /** One is still there, connected, and is like any other client that was dialled for from now on. Unix time. */
  joined(client: WorkerConnection, startedAtMs: number): void;
  /** No connection will be dialled by it any more, and all that were have been reported. */
  released(): void;
}

export interface WorkerConnection {
  readonly source: Endpoint;
  /** The listening side's own address for this client. */
  readonly local: Endpoint;
  /** Where it was going before the kernel redirected it; null where the listener is not for such clients. */
  readonly original: Endpoint | null;
  /** The request as it came, still unread in the socket; empty where there is no handshake. */
  readonly request: Buffer;
  /** Called for the end, and for the progress of `dial`. */
  events: DialEvents | null;
  /**
   * Has the thread connect, send `words` to the client, and move the bytes. `limited`: every piece is asked for from the
   * first on. `standing`: the same is to be done for others; null: they have to ask.
   */
  dial(way: DialPlan, words: Uint8Array, limited: boolean, standing: CachedRoute | null): void;
  /** The near end of the connection that was dialled, as the kernel has it now; null: there is none yet, or any more. */
  dialledFrom(): LocalEnd | null;
  /** Ends it as a fault would; it cannot be dialled for any more, and `toSocket` returns a destroyed socket. */
  reset(): void;
  /**
   * The socket as one of the runtime, with everything behind the handshake still to be read; the thread has done with it.
   * Not while it dials, and not after. A socket without descriptors left to it comes destroyed.
   */
  toSocket(): StreamSocket;
}

/** What threads may do in the place of a listener. */
export interface PlainOffload {
  readonly handshake: PlainHandshake;
  /** Takes the client over. `listener` is the endpoint that took it, which a captured client does not show. */
  on(client: WorkerConnection, listener: Endpoint): void;
}

/** The TLS library's context, held once more for other threads. */
export interface SharedTlsContext {
  /** The library's, in this process. */
  readonly address: bigint;
  /** Gives up this reference. Connections that were made from the context keep it alive on their own. */
  release(): void;
}

/** The contexts of a listener, one after the other. */
export interface TlsContextSource {
  /**
   * For new connections in one thread, whose choice of a protocol (ALPN) has the address `onAlpn`; to be released. Null: threads
   * cannot have it.
   */
  share(onAlpn: bigint): SharedTlsContext | null;
  /** Called when `share` returns another context from now on. Disposing it ends that. */
  watch(onChange: () => void): Disposable;
}

/** A client of a TLS listener after a worker's part of the handshake; the receiver takes or destroys it. */
export interface TlsWorkerConnection {
  readonly source: Endpoint;
  /** The listening side's own address for this client. */
  readonly local: Endpoint;
  /** Why the handshake came to nothing; then nothing is left of the client. Null: it is done, or under way. */
  readonly failure: string | null;
  readonly isDone: boolean;
  /** The descriptor and the library's object, which are the caller's from then on. */
  take(): { readonly fd: number; readonly ssl: bigint };
  /** Called with the stream that continues this connection, which is to be destroyed at the end of the program. */
  onStream: ((stream: Duplex) => void) | null;
  /** Closes a connection that was not taken. */
  destroy(): void;
}

/** The same for a listener whose clients begin with TLS. */
export interface TlsOffload {
  readonly handshake: "tls";
  readonly contexts: TlsContextSource;
  /** Takes the client over. */
  on(client: TlsWorkerConnection, listener: Endpoint): void;
}
