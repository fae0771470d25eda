/** What the accepting side of TLS is configured by: SSL_CTX of the libssl inside the Node binary. For the main thread. */
import type * as Ffi from "node:ffi";
import type { SharedTlsContext } from "#core/tls-contexts.ts";
import { alpnList, openAlpnChoice } from "./ssl-alpn.ts";
import { SslMaterial, type CommonSettings, type KeyPair, type SslContext } from "./ssl-material.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  TLS_server_method: { arguments: [], return: "pointer" },
  SSL_CTX_callback_ctrl: { arguments: ["pointer", "i32", "pointer"], return: "i64" },
  SSL_CTX_set_options: { arguments: ["pointer", "u64"], return: "u64" },
  SSL_CTX_set_num_tickets: { arguments: ["pointer", "u64"], return: "i32" },
  SSL_CTX_set_alpn_select_cb: { arguments: ["pointer", "pointer", "pointer"], return: "void" },
  SSL_CTX_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_CTX_up_ref: { arguments: ["pointer"], return: "i32" },
  SSL_CTX_free: { arguments: ["pointer"], return: "void" },
  SSL_CTX_set_verify: { arguments: ["pointer", "i32", "pointer"], return: "void" },
  SSL_CTX_get_cert_store: { arguments: ["pointer"], return: "pointer" },
  SSL_CTX_add_client_CA: { arguments: ["pointer", "pointer"], return: "i32" },
  X509_STORE_add_cert: { arguments: ["pointer", "pointer"], return: "i32" },
  X509_free: { arguments: ["pointer"], return: "void" },
  SSL_get_servername: { arguments: ["pointer", "i32"], return: "pointer" },
  SSL_get_version: { arguments: ["pointer"], return: "pointer" },
  SSL_get0_alpn_selected: { arguments: ["pointer", "pointer", "pointer"], return: "void" },
  SSL_get0_peer_certificate: { arguments: ["pointer"], return: "pointer" },
  SSL_get_verify_result: { arguments: ["pointer"], return: "i64" },
  X509_verify_cert_error_string: { arguments: ["i64"], return: "pointer" },
} as const;

// openssl/ssl.h.in and openssl/tls1.h of OpenSSL 3
const SSL_CTRL_SET_TLSEXT_SERVERNAME_CB = 53;
const SSL_CTRL_GET_TLSEXT_TICKET_KEYS = 58;
const SSL_CTRL_SET_TLSEXT_TICKET_KEYS = 59;
const SSL_OP_NO_TICKET = 1n << 14n;
const SSL_VERIFY_NONE = 0;
const SSL_VERIFY_PEER = 1;
const X509_V_OK = 0n;
const NULL = 0n;

/**
 * No tickets directly behind the handshake of TLS 1.3: a client gets its ticket together with the first data, see
 * `Ssl.write`.
 */
const TICKETS = 0n;

export interface ServerContextOptions extends CommonSettings, KeyPair {
  /** In the order of preference; empty: none is agreed on. */
  readonly alpn: readonly string[];
  /** Is the client asked for a certificate? Checked after the handshake by `clientCertificate`. */
  readonly asksClient: boolean;
  /** PEM of the authorities for client certificates; null: clients are not asked for one. */
  readonly authorities: string | null;
}

export class SslContexts {
  readonly #ffi: typeof Ffi;
  readonly #library;
  readonly #functions;
  readonly #material: SslMaterial;
  /** Functions of the library that answer as a callback has to; see docs/adr/0017. */
  readonly #onServerName: bigint;
  readonly #onVerify: bigint;
  #onAlpn = NULL;
  /** By their names. Never forgotten: a handshake may be under way; there are few. */
  readonly #alpns = new Map<string, Uint8Array>();
  /** For one answer: POINTER(8) LENGTH(4) */
  readonly #answer = new Uint8Array(new ArrayBuffer(16));
  readonly #answerAt: bigint;

  /** Null where this runtime has no FFI, or its libssl hides what is needed. */
  static open(): SslContexts | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
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
    this.#material = new SslMaterial(ffi);
    this.#answerAt = ffi.getRawPointer(this.#answer);
    // Any name is welcome, and remembered: SSL_is_dtls(3) says 0 of TLS, which is SSL_TLSEXT_ERR_OK.
    this.#onServerName = lib.getSymbol("SSL_is_dtls");
    // The handshake continues and the result is read after it: OPENSSL_version_major(3) never returns 0.
    this.#onVerify = lib.getSymbol("OPENSSL_version_major");
  }

  /** A second context with equal settings, for a thread whose own callback for ALPN is at the address `onAlpn`. */
  share(of: SslContext, options: ServerContextOptions, onAlpn: bigint): SharedTlsContext {
    const { address } = of;
    if (options.alpn.length === 0) {
      this.#functions.SSL_CTX_up_ref(address);
      return { address, release: () => this.#functions.SSL_CTX_free(address) };
    }
    const made = this.make(options, onAlpn);
    this.#shareTickets(address, made.address);
    return { address: made.address, release: () => made[Symbol.dispose]() };
  }

  /** A ticket of one is good for the other. */
  #shareTickets(from: bigint, to: bigint): void {
    const { SSL_CTX_ctrl } = this.#functions;
    const keys = Buffer.alloc(Number(SSL_CTX_ctrl(from, SSL_CTRL_GET_TLSEXT_TICKET_KEYS, 0n, NULL)));
    const at = this.#ffi.getRawPointer(keys);
    const size = BigInt(keys.length);
    SSL_CTX_ctrl(from, SSL_CTRL_GET_TLSEXT_TICKET_KEYS, size, at);
    SSL_CTX_ctrl(to, SSL_CTRL_SET_TLSEXT_TICKET_KEYS, size, at);
    keys.fill(0);
  }

  /** Throws an `Error` with the library's reason where certificate, key or ciphers cannot be used. `onAlpn`: see `openAlpnChoice`; by default this thread's. */
  make(options: ServerContextOptions, onAlpn = 0n): SslContext {
    const method = this.#functions.TLS_server_method();
    return this.#material.makeContext(method, (context) => this.#configure(context, options, onAlpn));
  }

  #ownOnAlpn(): bigint {
    if (this.#onAlpn === NULL) this.#onAlpn = openAlpnChoice(this.#ffi, this.#library.lib);
    return this.#onAlpn;
  }

  #configure(context: bigint, options: ServerContextOptions, onAlpn: bigint): void {
    const { SSL_CTX_callback_ctrl, SSL_CTX_set_alpn_select_cb, SSL_CTX_set_verify } = this.#functions;
    const { SSL_CTX_set_num_tickets, SSL_CTX_set_options } = this.#functions;
    const { alpn, asksClient } = options;
    this.#material.setCommon(context, options);
    this.#material.setKeyPair(context, options);
    SSL_CTX_set_num_tickets(context, TICKETS);
    SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, this.#onServerName);
    if (alpn.length > 0) SSL_CTX_set_alpn_select_cb(context, onAlpn || this.#ownOnAlpn(), this.#listOf(alpn));
    SSL_CTX_set_verify(context, asksClient ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, this.#onVerify);
    // A ticket would replace a client certificate that is not shown again.
    if (asksClient) SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    if (asksClient && options.authorities !== null) this.#trust(context, options.authorities);
  }

  #trust(context: bigint, pem: string): void {
    const { SSL_CTX_get_cert_store, X509_STORE_add_cert, SSL_CTX_add_client_CA, X509_free } = this.#functions;
    const store = SSL_CTX_get_cert_store(context);
    const authorities = this.#material.readCertificates(pem);
    const added = authorities.map((one) => {
      const ok = X509_STORE_add_cert(store, one) === 1 && SSL_CTX_add_client_CA(context, one) === 1;
      X509_free(one); // both took a reference of their own
      return ok;
    });
    if (added.length === 0 || added.includes(false)) throw this.#material.failure("client-auth-cert");
  }

  #listOf(alpn: readonly string[]): bigint {
    const key = alpn.join("\0");
    const list = this.#alpns.get(key) ?? alpnList(alpn);
    this.#alpns.set(key, list);
    return this.#ffi.getRawPointer(list);
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
    return this.#material.text(this.#functions.SSL_get_servername(ssl, 0));
  }

  /** `TLSv1.3` and the like. */
  versionOf(ssl: bigint): string | null {
    return this.#material.text(this.#functions.SSL_get_version(ssl));
  }

  /** Whether the client showed a certificate, and why the library refuses it; null: it does not. */
  clientCertificate(ssl: bigint): { readonly given: boolean; readonly refusal: string | null } {
    const { SSL_get0_peer_certificate, SSL_get_verify_result, X509_verify_cert_error_string } =
      this.#functions;
    const given = SSL_get0_peer_certificate(ssl) !== NULL;
    const result = SSL_get_verify_result(ssl);
    if (result === X509_V_OK) return { given, refusal: null };
    return {
      given,
      refusal: this.#material.text(X509_verify_cert_error_string(result)) ?? `error ${result}`,
    };
  }
}
