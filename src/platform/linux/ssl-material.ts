/** What contexts of both sides of TLS are made of, in the libssl inside the Node binary: settings, certificates, keys. */
import type * as Ffi from "node:ffi";

const SIGNATURES = {
  SSL_CTX_new: { arguments: ["pointer"], return: "pointer" },
  SSL_CTX_free: { arguments: ["pointer"], return: "void" },
  SSL_CTX_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_CTX_set_options: { arguments: ["pointer", "u64"], return: "u64" },
  SSL_CTX_set_cipher_list: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_CTX_set_ciphersuites: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_CTX_set_default_read_buffer_len: { arguments: ["pointer", "u64"], return: "void" },
  SSL_CTX_use_certificate: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_CTX_use_PrivateKey: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_CTX_check_private_key: { arguments: ["pointer"], return: "i32" },
  X509_free: { arguments: ["pointer"], return: "void" },
  EVP_PKEY_free: { arguments: ["pointer"], return: "void" },
  BIO_new_mem_buf: { arguments: ["pointer", "i32"], return: "pointer" },
  BIO_free: { arguments: ["pointer"], return: "i32" },
  PEM_read_bio_X509_AUX: { arguments: ["pointer", "pointer", "pointer", "pointer"], return: "pointer" },
  PEM_read_bio_PrivateKey: { arguments: ["pointer", "pointer", "pointer", "pointer"], return: "pointer" },
  ERR_clear_error: { arguments: [], return: "void" },
  ERR_peek_error: { arguments: [], return: "u64" },
  ERR_reason_error_string: { arguments: ["u64"], return: "pointer" },
} as const;

// openssl/ssl.h.in of OpenSSL 3
const SSL_CTRL_EXTRA_CHAIN_CERT = 14;
const SSL_CTRL_MODE = 33;
const SSL_CTRL_SET_SESS_CACHE_MODE = 44;
const SSL_CTRL_CLEAR_MODE = 78;
const SSL_CTRL_SET_MIN_PROTO_VERSION = 123;
const SSL_CTRL_SET_MAX_PROTO_VERSION = 124;
const SSL_MODE_ENABLE_PARTIAL_WRITE = 1n;
const SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER = 2n;
const SSL_MODE_AUTO_RETRY = 4n;
const SSL_MODE_RELEASE_BUFFERS = 0x10n;
const SSL_SESS_CACHE_OFF = 0n;
const SSL_OP_IGNORE_UNEXPECTED_EOF = 1n << 7n;
const SSL_OP_NO_RENEGOTIATION = 1n << 30n;
const SSL_OP_NO_TX_CERTIFICATE_COMPRESSION = 1n << 32n;
const SSL_OP_NO_RX_CERTIFICATE_COMPRESSION = 1n << 33n;
const NULL = 0n;
const VERSIONS = { "TLSv1.2": 0x0303n, "TLSv1.3": 0x0304n } as const;

/**
 * What one read of the library takes off a socket at most, where it may read ahead. It has memory for so much only while it
 * keeps a part of a record. With 64 KiB, bulk costs a tenth more.
 */
const READ_AHEAD_BYTES = 256 * 1024;

export interface CommonSettings {
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  /** As OpenSSL writes it, both kinds in one list. */
  readonly ciphers: string;
}

export interface KeyPair {
  /** PEM: the certificate, then its chain. */
  readonly certificate: string;
  readonly privateKey: string;
}

/** Errors are an `Error` with the library's reason. */
export class SslMaterial {
  readonly #ffi: typeof Ffi;
  readonly #functions;
  /** An empty password, or the library would ask the terminal for one. */
  readonly #noPassword = new Uint8Array(new ArrayBuffer(8));
  readonly #noPasswordAt: bigint;

  /** Throws where the runtime's libssl hides what is needed. */
  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#functions = ffi.dlopen(null, SIGNATURES).functions;
    this.#noPasswordAt = ffi.getRawPointer(this.#noPassword);
  }

  /** `method` is what the side is called by. Nothing is left where `configure` throws. */
  makeContext(method: bigint, configure: (context: bigint) => void): SslContext {
    const { SSL_CTX_new, SSL_CTX_free, ERR_clear_error } = this.#functions;
    ERR_clear_error();
    const context = SSL_CTX_new(method);
    if (context === NULL) throw this.failure("no memory for TLS");
    try {
      configure(context);
      return new SslContext(context, () => SSL_CTX_free(context));
    } catch (error) {
      SSL_CTX_free(context);
      ERR_clear_error();
      throw error;
    }
  }

  /** For connections on non-blocking descriptors, which pass from thread to thread. */
  setCommon(context: bigint, { minVersion, ciphers }: CommonSettings): void {
    const { SSL_CTX_ctrl, SSL_CTX_set_options, SSL_CTX_set_default_read_buffer_len } = this.#functions;
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, VERSIONS[minVersion], NULL);
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, VERSIONS["TLSv1.3"], NULL);
    // A TCP end without close_notify is an end, as for node:tls, which does not speak of compression either.
    const uncompressed = SSL_OP_NO_TX_CERTIFICATE_COMPRESSION | SSL_OP_NO_RX_CERTIFICATE_COMPRESSION;
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF | uncompressed);
    const modes =
      SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS;
    SSL_CTX_ctrl(context, SSL_CTRL_MODE, modes, NULL);
    // A record without data ends the call, so that key updates alone cannot keep the thread busy.
    SSL_CTX_ctrl(context, SSL_CTRL_CLEAR_MODE, SSL_MODE_AUTO_RETRY, NULL);
    SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL); // tickets need none
    SSL_CTX_set_default_read_buffer_len(context, BigInt(READ_AHEAD_BYTES));
    this.#setCiphers(context, ciphers);
  }

  #setCiphers(context: bigint, ciphers: string): void {
    const names = ciphers.split(":");
    const set = (call: "SSL_CTX_set_cipher_list" | "SSL_CTX_set_ciphersuites", list: string[]): void => {
      const text = Buffer.from(`${list.join(":")}\0`);
      if (this.#functions[call](context, text) !== 1) throw this.failure(`ciphers ${list.join(":")}`);
    };
    set(
      "SSL_CTX_set_ciphersuites",
      names.filter((name) => name.startsWith("TLS_")),
    );
    set(
      "SSL_CTX_set_cipher_list",
      names.filter((name) => !name.startsWith("TLS_")),
    );
  }

  /** Throws where they cannot be used, or do not fit together. */
  setKeyPair(context: bigint, { certificate, privateKey }: KeyPair): void {
    const { SSL_CTX_use_certificate, SSL_CTX_use_PrivateKey, SSL_CTX_check_private_key } = this.#functions;
    const { SSL_CTX_ctrl, X509_free, EVP_PKEY_free } = this.#functions;
    const [leaf, ...chain] = this.readCertificates(certificate);
    const taken = leaf !== undefined && SSL_CTX_use_certificate(context, leaf) === 1;
    if (leaf !== undefined) X509_free(leaf); // the context holds it by now
    let refused = !taken;
    for (const one of chain) {
      if (!refused && SSL_CTX_ctrl(context, SSL_CTRL_EXTRA_CHAIN_CERT, 0n, one) === 1n) continue; // owned by the context
      refused = true;
      X509_free(one);
    }
    if (refused) throw this.failure("the certificate");
    const key = this.#withPem(privateKey, (bio) =>
      this.#functions.PEM_read_bio_PrivateKey(bio, NULL, NULL, this.#noPasswordAt),
    );
    if (key === NULL) throw this.failure("the private key");
    const fits = SSL_CTX_use_PrivateKey(context, key) === 1 && SSL_CTX_check_private_key(context) === 1;
    EVP_PKEY_free(key);
    if (!fits) throw this.failure("the private key");
  }

  /** All certificates of a PEM text; the caller frees them. */
  readCertificates(pem: string): bigint[] {
    return this.#withPem(pem, (bio) => {
      const found: bigint[] = [];
      for (;;) {
        const one = this.#functions.PEM_read_bio_X509_AUX(bio, NULL, NULL, this.#noPasswordAt);
        if (one === NULL) break;
        found.push(one);
      }
      if (found.length > 0) this.#functions.ERR_clear_error(); // the end of the text is an error to it
      return found;
    });
  }

  #withPem<Result>(pem: string, read: (bio: bigint) => Result): Result {
    const text = Buffer.from(pem);
    const bio = this.#functions.BIO_new_mem_buf(this.#ffi.getRawPointer(text), text.length);
    if (bio === NULL) throw this.failure("no memory for TLS");
    try {
      return read(bio);
    } finally {
      this.#functions.BIO_free(bio);
      text.fill(0); // it may be a key; and the text lives to here
    }
  }

  /** Null for a null pointer. */
  text(pointer: bigint): string | null {
    return pointer === NULL ? null : this.#ffi.toString(pointer);
  }

  /** For what the library has refused; its queue of errors is empty then. */
  failure(what: string): Error {
    const code = this.#functions.ERR_peek_error();
    const reason = code === 0n ? null : this.text(this.#functions.ERR_reason_error_string(code));
    this.#functions.ERR_clear_error();
    return new Error(reason === null ? `${what} cannot be used` : `${what}: ${reason}`);
  }
}

/** Connections that were made from it keep it alive on their own. */
export class SslContext implements Disposable {
  /** 0: disposed of. */
  #address: bigint;
  readonly #free: () => void;

  constructor(address: bigint, free: () => void) {
    this.#address = address;
    this.#free = free;
  }

  /** Throws where it was disposed of. */
  get address(): bigint {
    if (this.#address === NULL) throw new Error("the TLS context was closed");
    return this.#address;
  }

  [Symbol.dispose](): void {
    if (this.#address === NULL) return;
    this.#address = NULL;
    this.#free();
  }
}
