/** What the accepting side of TLS is configured by: SSL_CTX of the libssl inside the Node binary. For the main thread. */
import type * as Ffi from "node:ffi";

const SIGNATURES = {
  TLS_server_method: { arguments: [], return: "pointer" },
  SSL_CTX_new: { arguments: ["pointer"], return: "pointer" },
  SSL_CTX_free: { arguments: ["pointer"], return: "void" },
  SSL_CTX_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_CTX_callback_ctrl: { arguments: ["pointer", "i32", "pointer"], return: "i64" },
  SSL_CTX_set_options: { arguments: ["pointer", "u64"], return: "u64" },
  SSL_CTX_set_cipher_list: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_CTX_set_ciphersuites: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_CTX_set_num_tickets: { arguments: ["pointer", "u64"], return: "i32" },
  SSL_CTX_set_default_read_buffer_len: { arguments: ["pointer", "u64"], return: "void" },
  SSL_CTX_use_certificate: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_CTX_use_PrivateKey: { arguments: ["pointer", "pointer"], return: "i32" },
  SSL_CTX_check_private_key: { arguments: ["pointer"], return: "i32" },
  SSL_CTX_set_alpn_select_cb: { arguments: ["pointer", "pointer", "pointer"], return: "void" },
  SSL_CTX_set_verify: { arguments: ["pointer", "i32", "pointer"], return: "void" },
  SSL_CTX_get_cert_store: { arguments: ["pointer"], return: "pointer" },
  SSL_CTX_add_client_CA: { arguments: ["pointer", "pointer"], return: "i32" },
  X509_STORE_add_cert: { arguments: ["pointer", "pointer"], return: "i32" },
  X509_free: { arguments: ["pointer"], return: "void" },
  EVP_PKEY_free: { arguments: ["pointer"], return: "void" },
  BIO_new_mem_buf: { arguments: ["pointer", "i32"], return: "pointer" },
  BIO_free: { arguments: ["pointer"], return: "i32" },
  PEM_read_bio_X509_AUX: { arguments: ["pointer", "pointer", "pointer", "pointer"], return: "pointer" },
  PEM_read_bio_PrivateKey: { arguments: ["pointer", "pointer", "pointer", "pointer"], return: "pointer" },
  SSL_get_servername: { arguments: ["pointer", "i32"], return: "pointer" },
  SSL_get_version: { arguments: ["pointer"], return: "pointer" },
  SSL_get0_alpn_selected: { arguments: ["pointer", "pointer", "pointer"], return: "void" },
  SSL_get0_peer_certificate: { arguments: ["pointer"], return: "pointer" },
  SSL_get_verify_result: { arguments: ["pointer"], return: "i64" },
  X509_verify_cert_error_string: { arguments: ["i64"], return: "pointer" },
  ERR_clear_error: { arguments: [], return: "void" },
  ERR_peek_error: { arguments: [], return: "u64" },
  ERR_reason_error_string: { arguments: ["u64"], return: "pointer" },
} as const;

// openssl/ssl.h.in and openssl/tls1.h of OpenSSL 3
const SSL_CTRL_EXTRA_CHAIN_CERT = 14;
const SSL_CTRL_MODE = 33;
const SSL_CTRL_SET_SESS_CACHE_MODE = 44;
const SSL_CTRL_SET_TLSEXT_SERVERNAME_CB = 53;
const SSL_CTRL_CLEAR_MODE = 78;
const SSL_CTRL_SET_MIN_PROTO_VERSION = 123;
const SSL_CTRL_SET_MAX_PROTO_VERSION = 124;
const SSL_MODE_ENABLE_PARTIAL_WRITE = 1n;
const SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER = 2n;
const SSL_MODE_AUTO_RETRY = 4n;
const SSL_MODE_RELEASE_BUFFERS = 0x10n;
const SSL_SESS_CACHE_OFF = 0n;
const SSL_OP_IGNORE_UNEXPECTED_EOF = 1n << 7n;
const SSL_OP_NO_TICKET = 1n << 14n;
const SSL_OP_NO_RENEGOTIATION = 1n << 30n;
const SSL_VERIFY_NONE = 0;
const SSL_VERIFY_PEER = 1;
const SSL_TLSEXT_ERR_OK = 0;
const SSL_TLSEXT_ERR_ALERT_FATAL = 2;
const SSL_TLSEXT_ERR_NOACK = 3;
const X509_V_OK = 0n;
const NULL = 0n;
const VERSIONS = { "TLSv1.2": 0x0303n, "TLSv1.3": 0x0304n } as const;

/**
 * What one read of the library takes off a socket at most, where it may read ahead. It has memory for so much only while it
 * keeps a part of a record. With 64 KiB, bulk costs a tenth more.
 */
const READ_AHEAD_BYTES = 256 * 1024;

/** For TLS 1.3: a client that comes again spends one and gets one. A second one would cost a twentieth of the handshake more. */
const TICKETS = 1n;

export interface ServerContextOptions {
  /** PEM: the certificate, then its chain. */
  readonly certificate: string;
  readonly privateKey: string;
  /** In the order of preference; empty: none is agreed on. */
  readonly alpn: readonly string[];
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  /** As OpenSSL writes it, both kinds in one list. */
  readonly ciphers: string;
  /** Is the client asked for a certificate? Checked after the handshake by `clientCertificate`. */
  readonly asksClient: boolean;
  /** PEM: whom a client's certificate may come from; null: nobody. */
  readonly authorities: string | null;
}

export class SslContexts {
  readonly #ffi: typeof Ffi;
  readonly #library;
  readonly #functions;
  readonly #onServerName: bigint;
  readonly #onAlpn: bigint;
  readonly #onVerify: bigint;
  /** By number, which is what the library hands back. Never forgotten: a handshake may be under way; there are few. */
  readonly #alpns: (readonly string[])[] = [];
  /** For one answer: POINTER(8) LENGTH(4) */
  readonly #answer = new Uint8Array(new ArrayBuffer(16));
  readonly #answerAt: bigint;

  /** Null where this runtime has no FFI, or its libssl hides what is needed. */
  static open(): SslContexts | null {
    const ffi = process.platform === "linux" ? process.getBuiltinModule("node:ffi") : undefined;
    if (ffi === undefined) return null;
    try {
      return new SslContexts(ffi);
    } catch {
      return null; // a runtime linked without these names: node:tls is there
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#library = ffi.dlopen(null, SIGNATURES);
    const { lib, functions } = this.#library;
    this.#functions = functions;
    this.#answerAt = ffi.getRawPointer(this.#answer);
    // The library calls these from within a handshake, so on this thread; an exception in them would abort the process.
    this.#onServerName = lib.registerCallback(
      { arguments: ["pointer", "pointer", "pointer"], return: "i32" },
      () => SSL_TLSEXT_ERR_OK, // any name is welcome, and remembered
    );
    this.#onAlpn = lib.registerCallback(
      { arguments: ["pointer", "pointer", "pointer", "pointer", "u32", "pointer"], return: "i32" },
      (_ssl, out, outLength, offered, size, number) => {
        try {
          return this.#selectAlpn(
            out as bigint,
            outLength as bigint,
            offered as bigint,
            size,
            Number(number),
          );
        } catch {
          return SSL_TLSEXT_ERR_ALERT_FATAL;
        }
      },
    );
    // 1: the handshake goes on, and the result is asked for behind it.
    this.#onVerify = lib.registerCallback({ arguments: ["i32", "pointer"], return: "i32" }, () => 1);
  }

  /** Throws an `Error` with the library's reason where certificate, key or ciphers cannot be used. */
  make(options: ServerContextOptions): SslContext {
    const { SSL_CTX_new, TLS_server_method, SSL_CTX_free, ERR_clear_error } = this.#functions;
    ERR_clear_error();
    const context = SSL_CTX_new(TLS_server_method());
    if (context === NULL) throw this.#failure("no memory for TLS");
    try {
      this.#configure(context, options);
      return new SslContext(context, () => SSL_CTX_free(context));
    } catch (error) {
      SSL_CTX_free(context);
      ERR_clear_error();
      throw error;
    }
  }

  #configure(context: bigint, options: ServerContextOptions): void {
    const { SSL_CTX_ctrl, SSL_CTX_set_options, SSL_CTX_set_default_read_buffer_len } = this.#functions;
    const { SSL_CTX_callback_ctrl, SSL_CTX_set_alpn_select_cb, SSL_CTX_set_verify } = this.#functions;
    const { asksClient } = options;
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, VERSIONS[options.minVersion], NULL);
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, VERSIONS["TLSv1.3"], NULL);
    // A TCP end without close_notify is an end, as for node:tls.
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    const modes =
      SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS;
    SSL_CTX_ctrl(context, SSL_CTRL_MODE, modes, NULL);
    // What is no data counts as a step, so that nobody is kept busy with key updates alone.
    SSL_CTX_ctrl(context, SSL_CTRL_CLEAR_MODE, SSL_MODE_AUTO_RETRY, NULL);
    SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL); // tickets need none
    this.#functions.SSL_CTX_set_num_tickets(context, TICKETS);
    SSL_CTX_set_default_read_buffer_len(context, BigInt(READ_AHEAD_BYTES));
    this.#setCiphers(context, options.ciphers);
    this.#setCertificate(context, options);
    SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, this.#onServerName);
    SSL_CTX_set_alpn_select_cb(context, this.#onAlpn, BigInt(this.#numberOf(options.alpn)));
    SSL_CTX_set_verify(context, asksClient ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, this.#onVerify);
    // A ticket would stand for a certificate that is not shown again.
    if (asksClient) SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    if (asksClient && options.authorities !== null) this.#trust(context, options.authorities);
  }

  #setCiphers(context: bigint, ciphers: string): void {
    const names = ciphers.split(":");
    const set = (call: "SSL_CTX_set_cipher_list" | "SSL_CTX_set_ciphersuites", list: string[]): void => {
      const text = Buffer.from(`${list.join(":")}\0`);
      if (this.#functions[call](context, text) !== 1) throw this.#failure(`ciphers ${list.join(":")}`);
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

  #setCertificate(context: bigint, { certificate, privateKey }: ServerContextOptions): void {
    const { SSL_CTX_use_certificate, SSL_CTX_use_PrivateKey, SSL_CTX_check_private_key } = this.#functions;
    const { SSL_CTX_ctrl, X509_free, EVP_PKEY_free } = this.#functions;
    const [leaf, ...chain] = this.#readCertificates(certificate);
    const taken = leaf !== undefined && SSL_CTX_use_certificate(context, leaf) === 1;
    if (leaf !== undefined) X509_free(leaf); // the context holds it by now
    let refused = !taken;
    for (const one of chain) {
      if (!refused && SSL_CTX_ctrl(context, SSL_CTRL_EXTRA_CHAIN_CERT, 0n, one) === 1n) continue; // owned by the context
      refused = true;
      X509_free(one);
    }
    if (refused) throw this.#failure("the certificate");
    const key = this.#withPem(privateKey, (bio) =>
      this.#functions.PEM_read_bio_PrivateKey(bio, NULL, NULL, this.#answerAt),
    );
    if (key === NULL) throw this.#failure("the private key");
    const fits = SSL_CTX_use_PrivateKey(context, key) === 1 && SSL_CTX_check_private_key(context) === 1;
    EVP_PKEY_free(key);
    if (!fits) throw this.#failure("the private key");
  }

  #trust(context: bigint, pem: string): void {
    const { SSL_CTX_get_cert_store, X509_STORE_add_cert, SSL_CTX_add_client_CA, X509_free } = this.#functions;
    const store = SSL_CTX_get_cert_store(context);
    const authorities = this.#readCertificates(pem);
    const added = authorities.map((one) => {
      const ok = X509_STORE_add_cert(store, one) === 1 && SSL_CTX_add_client_CA(context, one) === 1;
      X509_free(one); // both took a reference of their own
      return ok;
    });
    if (added.length === 0 || added.includes(false)) throw this.#failure("client-auth-cert");
  }

  /** All certificates of a PEM text; whoever gets them frees them. */
  #readCertificates(pem: string): bigint[] {
    return this.#withPem(pem, (bio) => {
      const found: bigint[] = [];
      for (;;) {
        // An empty password (the zeros of the answer), or the library would ask the terminal for one.
        const one = this.#functions.PEM_read_bio_X509_AUX(bio, NULL, NULL, this.#answerAt);
        if (one === NULL) break;
        found.push(one);
      }
      if (found.length > 0) this.#functions.ERR_clear_error(); // the end of the text is an error to it
      return found;
    });
  }

  #withPem<Result>(pem: string, read: (bio: bigint) => Result): Result {
    this.#answer.fill(0);
    const text = Buffer.from(pem);
    const bio = this.#functions.BIO_new_mem_buf(this.#ffi.getRawPointer(text), text.length);
    if (bio === NULL) throw this.#failure("no memory for TLS");
    try {
      return read(bio);
    } finally {
      this.#functions.BIO_free(bio);
      text.fill(0); // it may be a key; and the text lives to here
    }
  }

  #numberOf(alpn: readonly string[]): number {
    const found = this.#alpns.findIndex((one) => one.join("\0") === alpn.join("\0"));
    return found >= 0 ? found : this.#alpns.push(alpn) - 1;
  }

  /** Called by the library. `offered`: names with a length in front of each; what is chosen is pointed to where it lies. */
  #selectAlpn(out: bigint, outLength: bigint, offered: bigint, size: number, number: number): number {
    const wanted = this.#alpns[number] ?? [];
    if (wanted.length === 0) return SSL_TLSEXT_ERR_NOACK;
    const list = this.#ffi.toBuffer(offered, size, true);
    const places = new Map<string, number>();
    for (let at = 0; at < list.length; at += 1 + (list[at] as number)) {
      const name = list.toString("latin1", at + 1, at + 1 + (list[at] as number));
      if (!places.has(name)) places.set(name, at);
    }
    const chosen = wanted.find((name) => places.has(name));
    if (chosen === undefined) return SSL_TLSEXT_ERR_ALERT_FATAL;
    const at = places.get(chosen) as number;
    this.#ffi.setUint64(out, 0, offered + BigInt(at + 1));
    this.#ffi.setUint8(outLength, 0, list[at] as number);
    return SSL_TLSEXT_ERR_OK;
  }

  /** What both sides agreed on; null: nothing. */
  alpnOf(ssl: bigint): string | null {
    const answer = new DataView(this.#answer.buffer);
    this.#functions.SSL_get0_alpn_selected(ssl, this.#answerAt, this.#answerAt + 8n);
    const [at, size] = [answer.getBigUint64(0, true), answer.getUint32(8, true)];
    return at === NULL || size === 0 ? null : this.#ffi.toBuffer(at, size, true).toString("latin1");
  }

  /** The name in the client's hello; null: none. */
  serverNameOf(ssl: bigint): string | null {
    return this.#text(this.#functions.SSL_get_servername(ssl, 0));
  }

  /** `TLSv1.3` and the like. */
  versionOf(ssl: bigint): string | null {
    return this.#text(this.#functions.SSL_get_version(ssl));
  }

  /** Whether the client showed a certificate, and why the library refuses it; null: it does not. */
  clientCertificate(ssl: bigint): { readonly given: boolean; readonly refusal: string | null } {
    const { SSL_get0_peer_certificate, SSL_get_verify_result, X509_verify_cert_error_string } =
      this.#functions;
    const given = SSL_get0_peer_certificate(ssl) !== NULL;
    const result = SSL_get_verify_result(ssl);
    if (result === X509_V_OK) return { given, refusal: null };
    return { given, refusal: this.#text(X509_verify_cert_error_string(result)) ?? `error ${result}` };
  }

  #text(pointer: bigint): string | null {
    return pointer === NULL ? null : this.#ffi.toString(pointer);
  }

  #failure(what: string): Error {
    const code = this.#functions.ERR_peek_error();
    const reason = code === 0n ? null : this.#text(this.#functions.ERR_reason_error_string(code));
    this.#functions.ERR_clear_error();
    return new Error(reason === null ? `${what} cannot be used` : `${what}: ${reason}`);
  }
}

/** Conversations that were made of it keep it alive on their own. */
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
