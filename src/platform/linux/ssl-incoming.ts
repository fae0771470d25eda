import type * as Ffi from "node:ffi";

const SIGNATURES = {
  SSL_get_rbio: { arguments: ["pointer"], return: "pointer" },
  SSL_set0_rbio: { arguments: ["pointer", "pointer"], return: "void" },
  SSL_set_read_ahead: { arguments: ["pointer", "i32"], return: "void" },
  BIO_f_buffer: { arguments: [], return: "pointer" },
  BIO_new: { arguments: ["pointer"], return: "pointer" },
  BIO_free: { arguments: ["pointer"], return: "i32" },
  BIO_up_ref: { arguments: ["pointer"], return: "i32" },
  BIO_int_ctrl: { arguments: ["pointer", "i32", "i32", "i32"], return: "i64" },
  BIO_push: { arguments: ["pointer", "pointer"], return: "pointer" },
  BIO_pop: { arguments: ["pointer"], return: "pointer" },
  ERR_clear_error: { arguments: [], return: "void" },
} as const;

/** openssl/bio.h; with 0 behind the size it is the buffer for reading that is meant. */
const BIO_C_SET_BUFF_SIZE = 117;

/** The most that is asked of the socket at once: docs/adr/0020. */
const INCOMING_BYTES = 512 * 1024;
/** What so many have waiting is 16 MiB. */
const MOST_WIDE = 32;

/**
 * Connections of libssl in bulk: their sockets are read in large pieces into a buffer between socket and library
 * (BIO_f_buffer(3)). The library's own read-ahead would move the whole buffer once for each record, to align the
 * record. For one thread.
 */
export class SslIncoming {
  readonly #functions;
  /** A buffer that is free for reuse; 0: there is none. */
  #spare = 0n;
  #wide = 0;

  constructor(ffi: typeof Ffi) {
    this.#functions = ffi.dlopen(null, SIGNATURES).functions;
  }

  /** False: there is no memory for it, or as many have one as may. */
  widen(ssl: bigint): boolean {
    const { SSL_get_rbio, SSL_set0_rbio, SSL_set_read_ahead, BIO_up_ref, BIO_push } = this.#functions;
    if (this.#wide === MOST_WIDE) return false;
    const incoming = this.#spare === 0n ? this.#open() : this.#spare;
    if (incoming === 0n) return false;
    this.#spare = 0n;
    this.#wide++;
    const socket = SSL_get_rbio(ssl);
    BIO_up_ref(socket); // a reference for the chain, in place of the connection's
    BIO_push(incoming, socket);
    SSL_set0_rbio(ssl, incoming);
    SSL_set_read_ahead(ssl, 0);
    return true;
  }

  /** Undoes `widen`. `isEmpty`: the buffer is empty, since reading came to EAGAIN. Buffered bytes are lost. */
  narrow(ssl: bigint, isEmpty: boolean): void {
    const { SSL_get_rbio, SSL_set0_rbio, SSL_set_read_ahead, BIO_up_ref, BIO_pop, BIO_free } =
      this.#functions;
    const incoming = SSL_get_rbio(ssl);
    BIO_up_ref(incoming); // our reference, in place of the connection's
    SSL_set0_rbio(ssl, BIO_pop(incoming));
    SSL_set_read_ahead(ssl, 1);
    this.#wide--;
    if (isEmpty && this.#spare === 0n) this.#spare = incoming;
    else BIO_free(incoming);
  }

  #open(): bigint {
    const { BIO_f_buffer, BIO_new, BIO_int_ctrl, BIO_free, ERR_clear_error } = this.#functions;
    const made = BIO_new(BIO_f_buffer());
    if (made !== 0n && BIO_int_ctrl(made, BIO_C_SET_BUFF_SIZE, INCOMING_BYTES, 0) === 1n) return made;
    if (made !== 0n) BIO_free(made);
    ERR_clear_error();
    return 0n;
  }
}
