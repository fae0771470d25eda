/** The TLS of one connection of QUIC, as libssl calls back for it (SSL_set_quic_tls_cbs(3)). */
import type { QuicTlsCalls } from "./quic-tls-calls.ts";
import type { SslTickets } from "./ssl-tickets.ts";

const SSL_ERROR_SSL = 1;
const SSL_ERROR_SYSCALL = 5;
const SSL_ERROR_ZERO_RETURN = 6;
const SSL_SENT_SHUTDOWN = 1;
const INTERNAL_ERROR_ALERT = 80;

/** Of handshake bytes and secrets, as TLS numbers them. */
export type TlsLevel = 0 | 1 | 2 | 3;
/** As `TlsLevel`: Initial, 0-RTT, Handshake, 1-RTT. */
const LEVELS = [0, 1, 2, 3] as const;
const EARLY: TlsLevel = 1;
const APPLICATION: TlsLevel = 3;
const SSL_EARLY_DATA_ACCEPTED = 2;

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

export class QuicTlsSession implements Disposable {
  /** Address of the library's object; 0: freed. */
  ssl: bigint;
  isDone = false;
  /** What a callback threw. */
  failure: Error | null = null;
  readonly #library: QuicTlsCalls;
  readonly #events: QuicTlsEvents;
  readonly #forget: () => void;
  /** The library keeps the address. */
  #parameters: Uint8Array;
  readonly #pending: { readonly level: TlsLevel; readonly bytes: Uint8Array }[] = [];
  readonly #lent: Uint8Array[] = [];
  #readLevel: TlsLevel = 0;
  #writeLevel: TlsLevel = 0;
  #alert = 0;
  #isDriving = false;
  #isClosed = false;
  /** Null: of the accepting side. */
  readonly #tickets: SslTickets | null;
  #keepsTickets = false;
  /** Of the dialling side: the peer's parameters in the connection that the offered ticket is of; null: none is offered. */
  remembered: Uint8Array | null = null;
  #peerParameters: Uint8Array | null = null;

  constructor(
    library: QuicTlsCalls,
    ssl: bigint,
    parameters: Uint8Array,
    events: QuicTlsEvents,
    tickets: SslTickets | null,
    forget: () => void,
  ) {
    this.#library = library;
    this.ssl = ssl;
    this.#parameters = pinned(parameters);
    this.#events = events;
    this.#tickets = tickets;
    this.#forget = forget;
  }

  /** The library's object, for calls that look at it. Throws once it is freed: the library would follow a null pointer. */
  get object(): bigint {
    if (this.ssl === 0n) throw new Error("the TLS of this connection was freed");
    return this.ssl;
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
    if (level === APPLICATION && this.#keepsTickets && !this.#isClosed)
      this.#tickets?.keep(this.ssl, performance.now(), this.#peerParameters);
  }

  #drive(): void {
    if (this.#isDriving || this.#isClosed) return;
    this.#isDriving = true;
    try {
      this.#step();
      while (this.isDone && !this.#isClosed && this.#pending.some(({ level }) => level === this.#readLevel)) {
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
    const { ERR_clear_error, SSL_do_handshake, SSL_read, SSL_get_error, SSL_is_init_finished } =
      this.#library.functions;
    ERR_clear_error();
    const answer = this.isDone ? SSL_read(this.ssl, 0n, 0) : SSL_do_handshake(this.ssl);
    if (!this.isDone && answer === 1) {
      // A server that takes 0-RTT is told so when it has said its part: the client's is still to come.
      if (SSL_is_init_finished(this.ssl) !== 1) return;
      this.isDone = true;
      if (this.#tickets === null) this.#giveTicket();
      return;
    }
    const error = answer > 0 ? 0 : SSL_get_error(this.ssl, answer);
    if (this.failure === null && ![SSL_ERROR_SSL, SSL_ERROR_SYSCALL, SSL_ERROR_ZERO_RETURN].includes(error))
      return ERR_clear_error();
    const reason = this.#reason();
    if (this.failure !== null) throw this.failure;
    throw new TlsAlert(this.#alert === 0 ? INTERNAL_ERROR_ALERT : this.#alert, reason);
  }

  /** Of the accepting side. Nothing happens where tickets are off: clients have to show certificates. */
  #giveTicket(): void {
    const { SSL_set_num_tickets, SSL_new_session_ticket, SSL_do_handshake, ERR_clear_error } =
      this.#library.functions;
    SSL_set_num_tickets(this.ssl, 1n);
    if (SSL_new_session_ticket(this.ssl) === 1) SSL_do_handshake(this.ssl);
    ERR_clear_error();
  }

  /** An earlier session goes on: no certificate was shown. */
  get isResumed(): boolean {
    return !this.#isClosed && this.#library.functions.SSL_session_reused(this.ssl) === 1;
  }

  /** Once it is done: what was said before was understood. */
  get isEarlyAccepted(): boolean {
    const { SSL_get_early_data_status } = this.#library.functions;
    return !this.#isClosed && SSL_get_early_data_status(this.ssl) === SSL_EARLY_DATA_ACCEPTED;
  }

  /** The peer is the right one: its tickets are for later connections. */
  keepTickets(): void {
    this.#keepsTickets = true;
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
    // Handshake bytes never belong to the early level.
    if (known !== EARLY && forWriting === 1) this.#writeLevel = known;
    else if (known !== EARLY) this.#readLevel = known;
    const suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(this.ssl));
    this.#events.secret(known, forWriting === 1, suite, this.#copy(at, size));
  }

  parameters(at: unknown, size: unknown): void {
    const bytes = this.#copy(at, size);
    if (this.#tickets !== null) this.#peerParameters = new Uint8Array(bytes);
    this.#events.peerParameters(bytes);
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
    const { SSL_set_shutdown, SSL_free, ERR_clear_error } = this.#library.functions;
    // QUIC has its own end; without this the library would make the session one that cannot be resumed.
    if (this.isDone) SSL_set_shutdown(this.ssl, SSL_SENT_SHUTDOWN);
    SSL_free(this.ssl);
    ERR_clear_error();
    this.ssl = 0n;
    this.#lent.length = 0;
    this.#pending.length = 0;
    this.#parameters = NOTHING; // connections keep this object for all their life
  }
}

const NOTHING = new Uint8Array(0);

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
