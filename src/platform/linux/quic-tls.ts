/**
 * The TLS of QUIC by the libssl inside the Node binary, which knows no QUIC here: it is given handshake bytes and gives back
 * handshake bytes and secrets (SSL_set_quic_tls_cbs(3), OpenSSL 3.5). Of the thread that opened it: the library calls back.
 */
import type * as Ffi from "node:ffi";
import { asError } from "#core/errors.ts";

const SIGNATURES = {
  SSL_new: { arguments: ["pointer"], return: "pointer" },
  SSL_free: { arguments: ["pointer"], return: "void" },
  SSL_set_connect_state: { arguments: ["pointer"], return: "void" },
  SSL_set_accept_state: { arguments: ["pointer"], return: "void" },
  SSL_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_set_alpn_protos: { arguments: ["pointer", "pointer", "u32"], return: "i32" },
  SSL_set_quic_tls_cbs: { arguments: ["pointer", "pointer", "pointer"], return: "i32" },
  SSL_set_quic_tls_transport_params: { arguments: ["pointer", "pointer", "u64"], return: "i32" },
  SSL_do_handshake: { arguments: ["pointer"], return: "i32" },
  SSL_read: { arguments: ["pointer", "pointer", "i32"], return: "i32" },
  SSL_get_error: { arguments: ["pointer", "i32"], return: "i32" },
  SSL_get_current_cipher: { arguments: ["pointer"], return: "pointer" },
  SSL_CIPHER_get_protocol_id: { arguments: ["pointer"], return: "u16" },
  SSL_export_keying_material: {
    arguments: ["pointer", "pointer", "pointer", "pointer", "pointer", "pointer", "pointer", "i32"],
    return: "i32",
  },
  ERR_clear_error: { arguments: [], return: "void" },
  ERR_peek_error: { arguments: [], return: "u64" },
  ERR_reason_error_string: { arguments: ["u64"], return: "pointer" },
} as const;

// openssl/core_dispatch.h of OpenSSL 3.5
const FUNC_SEND = 2001n;
const FUNC_RECEIVE = 2002n;
const FUNC_RELEASE = 2003n;
const FUNC_SECRET = 2004n;
const FUNC_PARAMETERS = 2005n;
const FUNC_ALERT = 2006n;

const SSL_CTRL_SET_TLSEXT_HOSTNAME = 55;
const SSL_ERROR_SSL = 1;
const SSL_ERROR_SYSCALL = 5;
const SSL_ERROR_ZERO_RETURN = 6;
const INTERNAL_ERROR_ALERT = 80;
const P = "pointer";

/** Of handshake bytes and secrets, as TLS numbers them. */
export type TlsLevel = 0 | 1 | 2 | 3;
/** As `TlsLevel`: Initial, 0-RTT, Handshake, 1-RTT. */
const LEVELS = [0, 1, 2, 3] as const;

/** Called from within `give`. What is passed is the receiver's. */
export interface QuicTlsEvents {
  /** Handshake bytes for the peer, in order. */
  send(level: TlsLevel, bytes: Uint8Array): void;
  /** `suite`: the number of the cipher suite. */
  secret(level: TlsLevel, forWriting: boolean, suite: number, secret: Uint8Array): void;
  /** The peer's transport parameters, not yet authenticated. */
  peerParameters(bytes: Uint8Array): void;
}

/** The handshake failed; `alert` says how (RFC 8446 §6). */
export class TlsAlert extends Error {
  readonly alert: number;
  constructor(alert: number, message: string) {
    super(message);
    this.alert = alert;
  }
}

export interface ClientHello {
  /** For SNI; empty: none is sent. */
  readonly serverName: string;
  /** Each protocol with its length in front (RFC 7301 §3.1). */
  readonly alpn: Uint8Array;
}

export class QuicTlsLibrary {
  readonly ffi: typeof Ffi;
  readonly functions;
  readonly #library;
  readonly #sessions = new Map<bigint, QuicTlsSession>();
  readonly #table: BigUint64Array<ArrayBuffer>;
  readonly #tableAt: bigint;
  #next = 1n;

  /** Null where this runtime has no FFI, or its libssl has no such callbacks. */
  static open(): QuicTlsLibrary | null {
    const ffi = process.platform === "linux" ? process.getBuiltinModule("node:ffi") : undefined;
    if (ffi === undefined) return null;
    try {
      return new QuicTlsLibrary(ffi);
    } catch {
      return null; // a runtime linked with an older library, or without these names
    }
  }

  constructor(ffi: typeof Ffi) {
    this.ffi = ffi;
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.functions = this.#library.functions;
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
   * freed afterwards. Throws an `Error` where the library has no memory.
   */
  open(
    context: bigint,
    hello: ClientHello | null,
    parameters: Uint8Array,
    events: QuicTlsEvents,
  ): QuicTlsSession {
    const { SSL_new, SSL_set_quic_tls_cbs, SSL_set_accept_state, SSL_set_connect_state } = this.functions;
    const ssl = SSL_new(context);
    if (ssl === 0n) throw this.#noMemory();
    const key = this.#next++;
    const session = new QuicTlsSession(this, ssl, parameters, events, () => this.#sessions.delete(key));
    this.#sessions.set(key, session);
    if (hello === null) SSL_set_accept_state(ssl);
    else SSL_set_connect_state(ssl);
    const isReady =
      SSL_set_quic_tls_cbs(ssl, this.#tableAt, key) === 1 &&
      session.setParameters() &&
      (hello === null || this.#setHello(ssl, hello));
    if (isReady) return session;
    session[Symbol.dispose]();
    throw this.#noMemory();
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

/** The TLS of one connection. */
export class QuicTlsSession implements Disposable {
  /** Address of the library's object; 0: freed. */
  ssl: bigint;
  isDone = false;
  /** What a callback threw. */
  failure: Error | null = null;
  readonly #library: QuicTlsLibrary;
  readonly #events: QuicTlsEvents;
  readonly #forget: () => void;
  /** The library keeps the address. */
  readonly #parameters: Uint8Array;
  readonly #pending: { readonly level: TlsLevel; readonly bytes: Uint8Array }[] = [];
  readonly #lent: Uint8Array[] = [];
  #readLevel: TlsLevel = 0;
  #writeLevel: TlsLevel = 0;
  #alert = 0;
  #isDriving = false;
  #isClosed = false;

  constructor(
    library: QuicTlsLibrary,
    ssl: bigint,
    parameters: Uint8Array,
    events: QuicTlsEvents,
    forget: () => void,
  ) {
    this.#library = library;
    this.ssl = ssl;
    this.#parameters = pinned(parameters);
    this.#events = events;
    this.#forget = forget;
  }

  setParameters(): boolean {
    const { ffi, functions } = this.#library;
    const at = ffi.getRawPointer(this.#parameters);
    return functions.SSL_set_quic_tls_transport_params(this.ssl, at, BigInt(this.#parameters.length)) === 1;
  }

  /** Says the first bytes of the dialling side. Throws `TlsAlert`, or what an event threw. */
  begin(): void {
    this.#drive();
  }

  /** Handshake bytes of the peer, in order. Throws `TlsAlert`, or what an event threw. Nothing happens once it is disposed of. */
  give(level: TlsLevel, bytes: Uint8Array): void {
    if (this.#isClosed) return;
    this.#pending.push({ level, bytes: pinned(bytes) });
    this.#drive();
  }

  #drive(): void {
    if (this.#isDriving || this.#isClosed) return;
    this.#isDriving = true;
    try {
      this.#step();
      while (this.isDone && this.#pending.some(({ level }) => level === this.#readLevel)) {
        const waiting = this.#pending.length;
        this.#step();
        if (this.#pending.length === waiting) break;
      }
    } finally {
      this.#isDriving = false;
      if (this.#isClosed) this.#free();
    }
  }

  #step(): void {
    const { ERR_clear_error, SSL_do_handshake, SSL_read, SSL_get_error } = this.#library.functions;
    ERR_clear_error();
    const answer = this.isDone ? SSL_read(this.ssl, 0n, 0) : SSL_do_handshake(this.ssl);
    if (!this.isDone && answer === 1) {
      this.isDone = true;
      return;
    }
    const error = answer > 0 ? 0 : SSL_get_error(this.ssl, answer);
    if (this.failure === null && ![SSL_ERROR_SSL, SSL_ERROR_SYSCALL, SSL_ERROR_ZERO_RETURN].includes(error))
      return ERR_clear_error();
    const reason = this.#reason();
    if (this.failure !== null) throw this.failure;
    throw new TlsAlert(this.#alert === 0 ? INTERNAL_ERROR_ALERT : this.#alert, reason);
  }

  #reason(): string {
    const { ERR_peek_error, ERR_reason_error_string, ERR_clear_error } = this.#library.functions;
    const text = ERR_reason_error_string(ERR_peek_error());
    const reason = text === 0n ? null : this.#library.ffi.toString(text);
    ERR_clear_error();
    return reason ?? "the handshake failed";
  }

  sent(at: unknown, size: unknown, took: unknown): void {
    this.#events.send(this.#writeLevel, this.#copy(at, size));
    this.#library.ffi.setUint64(wordOf(took), 0, wordOf(size));
  }

  /** One piece, which stays where it is until it is released. */
  lend(at: unknown, size: unknown): void {
    const { ffi } = this.#library;
    const index = this.#pending.findIndex(({ level }) => level === this.#readLevel);
    const [piece] = index < 0 ? [] : this.#pending.splice(index, 1);
    if (piece !== undefined) {
      this.#lent.push(piece.bytes);
      ffi.setUint64(wordOf(at), 0, ffi.getRawPointer(piece.bytes));
    }
    ffi.setUint64(wordOf(size), 0, BigInt(piece?.bytes.length ?? 0));
  }

  released(): void {
    this.#lent.length = 0;
  }

  secret([level, forWriting, at, size]: readonly unknown[]): void {
    const { SSL_CIPHER_get_protocol_id, SSL_get_current_cipher } = this.#library.functions;
    const known = LEVELS[Number(level)] ?? 0;
    if (forWriting === 1) this.#writeLevel = known;
    else this.#readLevel = known;
    const suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(this.ssl));
    this.#events.secret(known, forWriting === 1, suite, this.#copy(at, size));
  }

  parameters(at: unknown, size: unknown): void {
    this.#events.peerParameters(this.#copy(at, size));
  }

  alerted(alert: number): void {
    this.#alert = alert;
  }

  #copy(at: unknown, size: unknown): Uint8Array {
    return this.#library.ffi.toBuffer(wordOf(at), Number(size), true);
  }

  /** `size` bytes that only both sides of this connection know (RFC 8446 §7.5). Throws where the handshake is not done. */
  exportKey(label: Uint8Array, context: Uint8Array, size: number): Buffer {
    const { ffi, functions } = this.#library;
    const out = Buffer.from(new ArrayBuffer(size));
    const [name, about] = [pinned(label), pinned(context)];
    const found =
      this.isDone && !this.#isClosed
        ? functions.SSL_export_keying_material(
            this.ssl,
            ffi.getRawPointer(out),
            BigInt(size),
            ffi.getRawPointer(name),
            BigInt(name.length),
            ffi.getRawPointer(about),
            BigInt(about.length),
            1,
          )
        : 0;
    name.fill(0); // both live to here
    about.fill(0);
    functions.ERR_clear_error();
    if (found !== 1) throw new Error("TLS gives no key of this connection");
    return out;
  }

  /** Frees the library's object; from within one of its callbacks, when that has returned. */
  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (!this.#isDriving) this.#free();
  }

  #free(): void {
    if (this.ssl === 0n) return;
    this.#forget();
    this.#library.functions.SSL_free(this.ssl);
    this.#library.functions.ERR_clear_error();
    this.ssl = 0n;
    this.#lent.length = 0;
    this.#pending.length = 0;
  }
}

/** A copy outside the moving heap. */
function pinned(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new ArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

/** An address or a count, as the library gives them. */
function wordOf(value: unknown): bigint {
  if (typeof value !== "bigint") throw new TypeError("libssl gave no word");
  return value;
}
