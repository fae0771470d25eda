/**
 * The TLS of QUIC by the libssl inside the Node binary, which knows no QUIC here: it is given handshake bytes and gives back
 * handshake bytes and secrets (SSL_set_quic_tls_cbs(3), OpenSSL 3.5). Of the thread that opened it: the library calls back.
 */
import type * as Ffi from "node:ffi";
import { asError } from "#core/errors.ts";
import { QUIC_TLS_CALLS } from "./quic-tls-calls.ts";
import { type QuicTlsEvents, QuicTlsSession } from "./quic-tls-session.ts";
import { openTickets, type SslTickets } from "./ssl-tickets.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

export { type QuicTlsEvents, TlsAlert, type TlsLevel } from "./quic-tls-session.ts";

// openssl/core_dispatch.h of OpenSSL 3.5
const FUNC_SEND = 2001n;
const FUNC_RECEIVE = 2002n;
const FUNC_RELEASE = 2003n;
const FUNC_SECRET = 2004n;
const FUNC_PARAMETERS = 2005n;
const FUNC_ALERT = 2006n;

const SSL_CTRL_SET_SESS_CACHE_SIZE = 42;
const SSL_CTRL_SET_SESS_CACHE_MODE = 44;
const SSL_CTRL_SET_TLSEXT_HOSTNAME = 55;
const SSL_SESS_CACHE_SERVER = 2n;
/** Of one context. The oldest goes where there is one more; its client shakes hands anew. */
const MOST_SESSIONS = 4096n;
const P = "pointer";

export interface ClientHello {
  /** For SNI; empty: none is sent. */
  readonly serverName: string;
  /** Each protocol with its length in front (RFC 7301 §3.1). */
  readonly alpn: Uint8Array;
  /** Of earlier connections with the same server. */
  readonly tickets: SslTickets;
}

export class QuicTlsLibrary {
  readonly ffi: typeof Ffi;
  readonly functions;
  readonly #library;
  /** Of one node. */
  readonly makeTickets: () => SslTickets;
  readonly #sessions = new Map<bigint, QuicTlsSession>();
  readonly #table: BigUint64Array<ArrayBuffer>;
  readonly #tableAt: bigint;
  #next = 1n;

  /** Null where this runtime has no FFI, or its libssl has no such callbacks. */
  static open(): QuicTlsLibrary | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new QuicTlsLibrary(ffi);
    } catch {
      return null; // a runtime linked with an older library, or without these names
    }
  }

  constructor(ffi: typeof Ffi) {
    this.ffi = ffi;
    this.#library = ffi.dlopen(null, QUIC_TLS_CALLS);
    this.functions = this.#library.functions;
    this.makeTickets = openTickets(this.functions);
    this.#table = this.#openCallbacks();
    this.#tableAt = ffi.getRawPointer(this.#table);
  }

  /** OSSL_DISPATCH: ID(4) UNUSED(4) FUNCTION(8), closed by an id of zero. */
  #openCallbacks(): BigUint64Array<ArrayBuffer> {
    const { lib } = this.#library;
    const register = (
      types: readonly ("pointer" | "u64" | "u32" | "i32" | "u8")[],
      run: (session: QuicTlsSession, args: readonly unknown[]) => void,
    ): bigint =>
      lib.registerCallback({ arguments: [P, ...types, P], return: "i32" }, (...args: unknown[]) =>
        this.#called(args.at(-1), (session) => run(session, args.slice(1, -1))),
      );
    const functions: readonly (readonly [bigint, bigint])[] = [
      [FUNC_SEND, register([P, "u64", P], (session, [at, size, took]) => session.sent(at, size, took))],
      [FUNC_RECEIVE, register([P, P], (session, [at, size]) => session.lend(at, size))],
      [FUNC_RELEASE, register(["u64"], (session) => session.released())],
      [FUNC_SECRET, register(["u32", "i32", P, "u64"], (session, args) => session.secret(args))],
      [FUNC_PARAMETERS, register([P, "u64"], (session, [at, size]) => session.parameters(at, size))],
      [FUNC_ALERT, register(["u8"], (session, [alert]) => session.alerted(Number(alert)))],
    ];
    const table = new BigUint64Array(new ArrayBuffer((functions.length + 1) * 16));
    for (const [index, [id, address]] of functions.entries()) {
      table[2 * index] = id;
      table[2 * index + 1] = address;
    }
    return table;
  }

  /** An exception would abort the process: it is kept, and the library is told that the call failed. */
  #called(key: unknown, run: (session: QuicTlsSession) => void): number {
    const session = typeof key === "bigint" ? this.#sessions.get(key) : undefined;
    if (session === undefined) return 0;
    try {
      run(session);
      return 1;
    } catch (error) {
      session.failure = asError(error);
      return 0;
    }
  }

  /**
   * The dialling side where `hello` is given, else the accepting one. `context`: address of one for TLS 1.3, which may be
   * freed afterwards. `mayBeEarly`: 0-RTT is offered where there is a ticket for it, or taken. Throws an `Error` where the
   * library has no memory.
   */
  open(
    context: bigint,
    hello: ClientHello | null,
    parameters: Uint8Array,
    events: QuicTlsEvents,
    mayBeEarly = false,
  ): QuicTlsSession {
    const { SSL_new, SSL_set_quic_tls_cbs, SSL_set_accept_state, SSL_set_connect_state } = this.functions;
    const ssl = SSL_new(context);
    if (ssl === 0n) throw this.#noMemory();
    const key = this.#next++;
    const tickets = hello?.tickets ?? null;
    const forget = (): void => void this.#sessions.delete(key);
    const session = new QuicTlsSession(this, ssl, parameters, events, tickets, forget);
    this.#sessions.set(key, session);
    if (hello === null) SSL_set_accept_state(ssl);
    else SSL_set_connect_state(ssl);
    const isReady =
      SSL_set_quic_tls_cbs(ssl, this.#tableAt, key) === 1 &&
      session.setParameters() &&
      (hello === null || this.#setHello(ssl, hello));
    if (isReady) {
      session.remembered = tickets?.offer(ssl, performance.now()) ?? null;
      if (mayBeEarly) this.#allowEarly(context, session, hello === null);
      return session;
    }
    session[Symbol.dispose]();
    throw this.#noMemory();
  }

  /** A server keeps each session until it is used, once: so what came early is not taken a second time. */
  #allowEarly(context: bigint, { ssl, remembered }: QuicTlsSession, isServer: boolean): void {
    const { SSL_CTX_ctrl, SSL_set_quic_tls_early_data_enabled, ERR_clear_error } = this.functions;
    if (!isServer && remembered === null) return;
    if (isServer) {
      SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_SERVER, 0n);
      SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_SIZE, MOST_SESSIONS, 0n);
    }
    SSL_set_quic_tls_early_data_enabled(ssl, 1); // refused where the ticket is not for it
    ERR_clear_error();
  }

  #setHello(ssl: bigint, { serverName, alpn }: ClientHello): boolean {
    const name = Buffer.from(`${serverName}\0`);
    const at = this.ffi.getRawPointer(name);
    const isNamed =
      serverName === "" || this.functions.SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0n, at) === 1n;
    name.fill(0); // it lives to here
    const offered = this.ffi.getRawPointer(alpn);
    return isNamed && this.functions.SSL_set_alpn_protos(ssl, offered, alpn.length) === 0; // 0 is the good answer
  }

  #noMemory(): Error {
    this.functions.ERR_clear_error();
    return new Error("libssl has no memory for a connection of QUIC");
  }
}
