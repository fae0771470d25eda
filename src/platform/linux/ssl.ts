/**
 * Connections of the libssl inside the Node binary (OpenSSL 3, SSL_read(3), SSL_write(3)) on non-blocking descriptors.
 * An SSL object is used by one thread at a time; it may pass from the main thread to a worker together with its
 * descriptor. Results are counts, or errnos as negative numbers as in relay-calls.ts. The library's error queue is left
 * empty after every call that failed, because node:crypto reads the same queue; it is also emptied before a call,
 * because old entries would be taken for a fault of this connection (SSL_get_error(3)).
 */
import type * as Ffi from "node:ffi";
import { WORDS } from "./machine-words.ts";
import { EAGAIN, EINTR } from "./relay-calls.ts";
import { openAlpnChoice } from "./ssl-alpn.ts";
import { SslIncoming } from "./ssl-incoming.ts";
import { SslOutgoing } from "./ssl-outgoing.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  SSL_new: { arguments: ["pointer"], return: "pointer" },
  SSL_free: { arguments: ["pointer"], return: "void" },
  SSL_set_fd: { arguments: ["pointer", "i32"], return: "i32" },
  SSL_set_SSL_CTX: { arguments: ["pointer", "pointer"], return: "pointer" },
  SSL_set_accept_state: { arguments: ["pointer"], return: "void" },
  SSL_set_read_ahead: { arguments: ["pointer", "i32"], return: "void" },
  SSL_do_handshake: { arguments: ["pointer"], return: "i32" },
  SSL_read: { arguments: WORDS[3], return: "i32" },
  SSL_peek: { arguments: WORDS[3], return: "i32" },
  SSL_write: { arguments: WORDS[3], return: "i32" },
  SSL_new_session_ticket: { arguments: ["pointer"], return: "i32" },
  SSL_get_num_tickets: { arguments: ["pointer"], return: "i32" },
  SSL_set_num_tickets: { arguments: ["pointer", "u64"], return: "i32" },
  SSL_has_pending: { arguments: ["pointer"], return: "i32" },
  SSL_pending: { arguments: ["pointer"], return: "i32" },
  SSL_key_update: { arguments: ["pointer", "i32"], return: "i32" },
  SSL_shutdown: { arguments: ["pointer"], return: "i32" },
  SSL_get_error: { arguments: ["pointer", "i32"], return: "i32" },
  ERR_clear_error: { arguments: [], return: "void" },
  ERR_peek_error: { arguments: [], return: "u64" },
  ERR_reason_error_string: { arguments: ["u64"], return: "pointer" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

/** The peer need not answer by one of its own. */
const SSL_KEY_UPDATE_NOT_REQUESTED = 0;
const SSL_ERROR_WANT_READ = 2;
const SSL_ERROR_WANT_WRITE = 3;
const SSL_ERROR_ZERO_RETURN = 6;

/** There may be more to read. */
export const FULL = 1;
/** The peer said that no more follows. */
export const ENDED = -10_000;
/** Reading must wait until the socket takes bytes: an answer to a key update is on its way. No errno. */
export const BLOCKED_BY_WRITE = -10_011;
/** The connection cannot continue: a fault of the peer, or of the transport. The errno EPROTO. */
export const BROKEN = -71;

/** The most that one record carries (RFC 8446 §5.1). */
export const RECORD_BYTES = 16_384;

/** What one `read` opens at most: a peer decides how little is in each. Those of servers that begin small fill 64 KiB. */
const MOST_RECORDS = 64;

/** Of the thread that made it. Null where this runtime has no FFI, or its libssl hides what is needed. */
export function openSsl(buffer: Uint8Array): Ssl | null {
  const ffi = openLinuxFfi();
  if (ffi === null) return null;
  try {
    return new Ssl(ffi, buffer);
  } catch {
    return null; // a runtime linked without these names: node:tls is there
  }
}

export class Ssl {
  /** For connections in bulk. */
  readonly incoming: SslIncoming;
  /** For connections of which many records go out at once. */
  readonly outgoing: SslOutgoing;
  /** What `read` fills and `write` empties, from its start. */
  readonly buffer: Uint8Array;
  /** Why the last `read` gave no more: `FULL`, EAGAIN, EINTR, `BLOCKED_BY_WRITE`, `BROKEN`, or `ENDED`. */
  outcome = FULL;
  /** Pieces that the last `read` has put together: each is a record or the rest of one. */
  pieces = 0;
  /** What the library says of the last handshake that failed; 0: nothing, it was the connection. */
  fault = 0;
  readonly #ffi: typeof Ffi;
  readonly #library;
  readonly #functions;
  #onAlpn = 0n;
  readonly #start: bigint;
  readonly #errno: Int32Array;

  /** Keeps the buffer, which must never be detached. */
  constructor(ffi: typeof Ffi, buffer: Uint8Array) {
    this.#ffi = ffi;
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#functions = this.#library.functions;
    this.incoming = new SslIncoming(ffi);
    this.outgoing = new SslOutgoing(ffi);
    this.buffer = buffer;
    this.#start = ffi.getRawPointer(buffer);
    this.#errno = new Int32Array(ffi.toArrayBuffer(this.#functions.__errno_location(), 4, false));
  }

  /** Address of this thread's choice of a protocol, for contexts of the accepting side; see ssl-alpn.ts. */
  onAlpn(): bigint {
    if (this.#onAlpn === 0n) this.#onAlpn = openAlpnChoice(this.#ffi, this.#library.lib);
    return this.#onAlpn;
  }

  /** The accepting side on a socket. Zero: the library has no memory. `readAhead`: it may read more than one record. */
  accept(context: bigint, fd: number, readAhead: boolean): bigint {
    const { SSL_new, SSL_set_fd, SSL_set_accept_state, SSL_set_read_ahead } = this.#functions;
    const ssl = SSL_new(context);
    if (ssl === 0n) return this.#forget(0n);
    if (SSL_set_fd(ssl, fd) !== 1) {
      this.free(ssl);
      return 0n;
    }
    SSL_set_accept_state(ssl);
    SSL_set_read_ahead(ssl, readAhead ? 1 : 0);
    return ssl;
  }

  /** Of one in the middle of its handshake: what is still to be chosen is chosen as this context says. False: no memory. */
  moveTo(ssl: bigint, context: bigint): boolean {
    return this.#functions.SSL_set_SSL_CTX(ssl, context) !== 0n || this.#forget(false);
  }

  /** From now on whatever the socket has may be read, and kept; false: nothing behind the record that is read. */
  readAhead(ssl: bigint, isAhead = true): void {
    this.#functions.SSL_set_read_ahead(ssl, isAhead ? 1 : 0);
  }

  /** Frees the object; the descriptor stays open. */
  free(ssl: bigint): void {
    this.#functions.SSL_free(ssl);
    this.#functions.ERR_clear_error();
  }

  /** 1: done. EAGAIN, `BLOCKED_BY_WRITE`; or `BROKEN`, and `fault` says why. */
  handshake(ssl: bigint): number {
    this.#functions.ERR_clear_error();
    const done = this.#functions.SSL_do_handshake(ssl);
    if (done === 1) return 1;
    const error = this.#functions.SSL_get_error(ssl, done);
    if (error === SSL_ERROR_WANT_READ) return EAGAIN;
    if (error === SSL_ERROR_WANT_WRITE) return BLOCKED_BY_WRITE;
    this.fault = Number(this.#functions.ERR_peek_error()); // of 32 bits
    return this.#forget(BROKEN);
  }

  /**
   * Up to `size` plain bytes to the start of the buffer; `outcome` says what stopped it. 0: there are none.
   */
  read(ssl: bigint, size: number): number {
    return this.#fill(ssl, size, false);
  }

  /** The same without a second look at the socket: behind EAGAIN it may have more. */
  readOnce(ssl: bigint, size: number): number {
    return this.#fill(ssl, size, true);
  }

  #fill(ssl: bigint, size: number, once: boolean): number {
    let total = 0;
    this.outcome = FULL;
    this.#functions.ERR_clear_error();
    for (this.pieces = 0; total < size && this.pieces < MOST_RECORDS;) {
      this.#errno[0] = 0;
      const bytes = this.#functions.SSL_read(ssl, this.#start + BigInt(total), BigInt(size - total));
      if (bytes <= 0) {
        this.outcome = this.#outcomeOf(ssl, bytes);
        break;
      }
      total += bytes;
      this.pieces++;
      if (!once || this.hasPending(ssl)) continue;
      this.outcome = EAGAIN;
      break;
    }
    return total;
  }

  /** The same, and nothing beyond one record; the next one is still in the socket where nothing was read ahead. */
  readRecord(ssl: bigint, size = RECORD_BYTES): number {
    this.outcome = FULL;
    this.#functions.ERR_clear_error();
    this.#errno[0] = 0;
    const bytes = this.#functions.SSL_read(ssl, this.#start, BigInt(size));
    this.pieces = bytes > 0 ? 1 : 0;
    if (bytes > 0) return bytes;
    this.outcome = this.#outcomeOf(ssl, bytes);
    return 0;
  }

  /** It has read more from its socket than it has given. */
  hasPending(ssl: bigint): boolean {
    return this.#functions.SSL_has_pending(ssl) > 0;
  }

  /** The next write is sealed with another key, and says so in front. */
  updateKey(ssl: bigint): void {
    if (this.#functions.SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) !== 1) this.#forget(0);
  }

  /**
   * Takes plain bytes from the start of the buffer: how many, or why none. What was not taken must come again, as it was.
   */
  write(ssl: bigint, size: number): number {
    let total = 0;
    this.#functions.ERR_clear_error();
    if (this.#functions.SSL_get_num_tickets(ssl) === 0) this.#sendTicket(ssl);
    while (total < size) {
      const piece = Math.min(RECORD_BYTES, size - total);
      const bytes = this.#functions.SSL_write(ssl, this.#start + BigInt(total), BigInt(piece));
      if (bytes <= 0) {
        const why = this.#outcomeOf(ssl, bytes);
        if (total > 0) break;
        return why === BLOCKED_BY_WRITE || why === EINTR ? EAGAIN : why === ENDED ? BROKEN : why;
      }
      total += bytes;
    }
    return total;
  }

  /**
   * Goes out with what is written next. Right behind the handshake it would reach clients that say all and close without ever
   * reading, and a system that closes with something unread resets: what it had not sent yet would be lost. The number says from
   * now on that it was asked for; the library looks at it in the handshake only.
   */
  #sendTicket(ssl: bigint): void {
    this.#functions.SSL_set_num_tickets(ssl, 1n);
    if (this.#functions.SSL_new_session_ticket(ssl) !== 1) this.#functions.ERR_clear_error(); // TLS 1.2 has sent its own
  }

  /** Plain bytes of the record that is under way; opens the next one where none is. 0: the end. */
  available(ssl: bigint): number {
    const { ERR_clear_error, SSL_pending, SSL_peek } = this.#functions;
    const bytes = SSL_pending(ssl);
    if (bytes > 0) return bytes;
    ERR_clear_error();
    this.#errno[0] = 0;
    const next = SSL_peek(ssl, this.#start, 1n);
    if (next > 0) return SSL_pending(ssl);
    const why = this.#outcomeOf(ssl, next);
    return why === ENDED ? 0 : why;
  }

  /** Up to `size` plain bytes of one record to the start of the buffer, which come again; 0 at the end; else why there are none. */
  peek(ssl: bigint, size: number): number {
    this.#functions.ERR_clear_error();
    this.#errno[0] = 0;
    const bytes = this.#functions.SSL_peek(ssl, this.#start, BigInt(size));
    if (bytes > 0) return bytes;
    const why = this.#outcomeOf(ssl, bytes);
    if (why === BLOCKED_BY_WRITE) return EAGAIN;
    return why === ENDED ? 0 : why;
  }

  /** From now on it reads and writes by this descriptor. */
  moveSocket(ssl: bigint, fd: number): void {
    if (this.#functions.SSL_set_fd(ssl, fd) !== 1) this.#functions.ERR_clear_error();
  }

  /** Says that no more follows (close_notify), behind a change of keys that was to come with the next write. 0: said; EAGAIN; `BROKEN`. */
  shutdown(ssl: bigint): number {
    this.#functions.ERR_clear_error();
    this.#functions.SSL_do_handshake(ssl); // the library says no end while it is due
    const answer = this.#functions.SSL_shutdown(ssl);
    if (answer >= 0) return 0;
    return this.#functions.SSL_get_error(ssl, answer) === SSL_ERROR_WANT_WRITE
      ? EAGAIN
      : this.#forget(BROKEN);
  }

  #outcomeOf(ssl: bigint, answer: number): number {
    const error = this.#functions.SSL_get_error(ssl, answer);
    // It says so, too, where it has only taken what is no data: then the socket was not asked in vain.
    if (error === SSL_ERROR_WANT_READ) return this.#errno[0] === -EAGAIN ? EAGAIN : EINTR;
    if (error === SSL_ERROR_WANT_WRITE) return BLOCKED_BY_WRITE;
    return this.#forget(error === SSL_ERROR_ZERO_RETURN ? ENDED : BROKEN);
  }

  #forget<Answer>(answer: Answer): Answer {
    this.#functions.ERR_clear_error();
    return answer;
  }

  /** A `fault` in words, of whatever thread. */
  reasonOf(fault: number): string {
    const text = this.#functions.ERR_reason_error_string(BigInt(fault));
    const reason = text === 0n ? null : this.#ffi.toString(text);
    return this.#forget(reason ?? "the connection ended");
  }
}
