import type * as Ffi from "node:ffi";
import { int32At, itemAt } from "#lib/at.ts";
import { WORDS } from "./machine-words.ts";
import { EAGAIN, EINTR } from "./relay-calls.ts";

const SIGNATURES = {
  SSL_set0_wbio: { arguments: ["pointer", "pointer"], return: "void" },
  SSL_set_wfd: { arguments: ["pointer", "i32"], return: "i32" },
  BIO_new_bio_pair: { arguments: ["pointer", "u64", "pointer", "u64"], return: "i32" },
  BIO_up_ref: { arguments: ["pointer"], return: "i32" },
  BIO_nread0: { arguments: WORDS[2], return: "i32" },
  BIO_nread: { arguments: WORDS[3], return: "i32" },
  write: { arguments: WORDS[3], return: "i32" },
  ERR_clear_error: { arguments: [], return: "void" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

const NOTHING = new Uint8Array(0);
/** What one call of `Ssl.write` can come to, and more: of a buffer of 256 KiB each record gets 22 bytes, 90 in TLS 1.2. */
const OUTGOING_BYTES = 512 * 1024;

/**
 * Connections of libssl whose ciphertext is collected in memory and sent by one system call for many records. For one
 * thread, and for one connection at a time: what one has written is sent or taken before another writes.
 */
export class SslOutgoing {
  readonly #ffi: typeof Ffi;
  readonly #functions;
  readonly #errno: Int32Array;
  /** For an address that the library answers with. */
  readonly #answer = new BigUint64Array(new ArrayBuffer(16));
  readonly #answerAt: bigint;
  /** The pair of memory BIOs that connections write into; empty between any two of them. Made at the first use. */
  #pair: { readonly into: bigint; readonly from: bigint } | null = null;

  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#functions = ffi.dlopen(null, SIGNATURES).functions;
    this.#answerAt = ffi.getRawPointer(this.#answer);
    this.#errno = new Int32Array(ffi.toArrayBuffer(this.#functions.__errno_location(), 4, false));
  }

  /** From now on what this connection writes is collected until `send`, which must follow every write. False: no memory. */
  collect(ssl: bigint): boolean {
    this.#pair ??= this.#open();
    if (this.#pair === null) return false;
    this.#functions.BIO_up_ref(this.#pair.into);
    this.#functions.SSL_set0_wbio(ssl, this.#pair.into);
    return true;
  }

  /** Undoes `collect`: the connection writes to the socket that it reads from. False: the library has no memory. */
  restore(ssl: bigint, fd: number): boolean {
    return this.#functions.SSL_set_wfd(ssl, fd) === 1;
  }

  /**
   * Sends the ciphertext of the connection that was written last. Returns the part that the socket did not take, an
   * errno, or null.
   */
  send(fd: number): Uint8Array | number | null {
    const size = this.#waitingBytes();
    if (size <= 0) return null;
    const at = itemAt(this.#answer, 0);
    const sent = this.#functions.write(BigInt(fd), at, BigInt(size));
    const errno = sent < 0 ? -int32At(this.#errno, 0) : 0;
    const rest = this.#takeOut(Math.max(0, sent), size);
    return errno === 0 || errno === EAGAIN || errno === EINTR ? rest : errno;
  }

  /** Shows the ciphertext of the last write and where it lies, with nothing sent; valid until it is sent or taken. */
  show(): { readonly sealed: Uint8Array; readonly address: bigint } {
    const size = Math.max(0, this.#waitingBytes());
    const address = size === 0 ? 0n : itemAt(this.#answer, 0);
    return { sealed: size === 0 ? NOTHING : this.#ffi.toBuffer(address, size, false), address };
  }

  /** The ciphertext itself, with nothing sent. */
  take(): Uint8Array | null {
    const size = this.#waitingBytes();
    return size <= 0 ? null : this.#takeOut(0, size);
  }

  /**
   * To be called when a connection ends, in whatever way, so that none of its ciphertext goes out with that of the
   * next one. True: there was some.
   */
  discard(): boolean {
    const size = this.#waitingBytes();
    if (size > 0) this.#takeOut(size, size);
    return size > 0;
  }

  #open(): { into: bigint; from: bigint } | null {
    const size = BigInt(OUTGOING_BYTES);
    if (this.#functions.BIO_new_bio_pair(this.#answerAt, size, this.#answerAt + 8n, size) !== 1) {
      this.#functions.ERR_clear_error();
      return null;
    }
    return { into: itemAt(this.#answer, 0), from: itemAt(this.#answer, 1) };
  }

  /** How much there is, in one piece; where, is in the answer. */
  #waitingBytes(): number {
    return this.#pair === null ? 0 : this.#functions.BIO_nread0(this.#pair.from, this.#answerAt);
  }

  /** A copy of what lies behind the first bytes; all of it is gone then. */
  #takeOut(first: number, size: number): Uint8Array | null {
    const at = itemAt(this.#answer, 0) + BigInt(first);
    const rest = first < size ? this.#ffi.toBuffer(at, size - first, true) : null;
    if (this.#pair !== null) this.#functions.BIO_nread(this.#pair.from, this.#answerAt, BigInt(size));
    return rest;
  }
}
