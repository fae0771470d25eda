/** What the accepting side of TLS is configured by: SSL_CTX of the libssl inside the Node binary. For the main thread. */
import type * as Ffi from "node:ffi";
import type { SharedContext } from "#core/held.ts";
import { SslMaterial, type CommonSettings, type KeyPair, type SslContext } from "./ssl-material.ts";

const SIGNATURES = {
  TLS_server_method: { arguments: [], return: "pointer" },
  SSL_CTX_callback_ctrl: { arguments: ["pointer", "i32", "pointer"], return: "i64" },
  SSL_CTX_set_options: { arguments: ["pointer", "u64"], return: "u64" },
  SSL_CTX_set_num_tickets: { arguments: ["pointer", "u64"], return: "i32" },
  SSL_CTX_set_alpn_select_cb: { arguments: ["pointer", "pointer", "pointer"], return: "void" },
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
const SSL_OP_NO_TICKET = 1n << 14n;
const SSL_VERIFY_NONE = 0;
const SSL_VERIFY_PEER = 1;
const SSL_TLSEXT_ERR_OK = 0;
const SSL_TLSEXT_ERR_ALERT_FATAL = 2;
const X509_V_OK = 0n;
const NULL = 0n;

/** For TLS 1.3: a client that comes again spends one and gets one. A second one would cost a twentieth of the handshake more. */
const TICKETS = 1n;

export interface ServerContextOptions extends CommonSettings, KeyPair {
  /** In the order of preference; empty: none is agreed on. */
  readonly alpn: readonly string[];
  /** Is the client asked for a certificate? Checked after the handshake by `clientCertificate`. */
  readonly asksClient: boolean;
  /** PEM: whom a client's certificate may come from; null: nobody. */
  readonly authorities: string | null;
}

export class SslContexts {
  readonly #ffi: typeof Ffi;
  readonly #library;
  readonly #functions;
  readonly #material: SslMaterial;
  /** Functions of the library that answer as a callback has to; see docs/adr/0308. */
  readonly #onServerName: bigint;
  readonly #onVerify: bigint;
  #onAlpn = NULL;
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
    this.#material = new SslMaterial(ffi);
    this.#answerAt = ffi.getRawPointer(this.#answer);
    // Any name is welcome, and remembered: SSL_is_dtls(3) says 0 of TLS, which is SSL_TLSEXT_ERR_OK.
    this.#onServerName = lib.getSymbol("SSL_is_dtls");
    // The handshake goes on, and the result is asked for behind it: OPENSSL_version_major(3) is never 0.
    this.#onVerify = lib.getSymbol("OPENSSL_version_major");
  }

  /** JavaScript of this thread, and of no other: the library calls it from within a handshake. An exception would abort the process. */
  #openOnAlpn(): bigint {
    const { lib } = this.#library;
    return lib.registerCallback(
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
  }

  /** The same once more, for whoever makes conversations of it in other threads: to be `release`d. Only of one without `alpn`. */
  share({ address }: SslContext): SharedContext {
    this.#functions.SSL_CTX_up_ref(address);
    return { address, release: () => this.#functions.SSL_CTX_free(address) };
  }

  /** Throws an `Error` with the library's reason where certificate, key or ciphers cannot be used. */
  make(options: ServerContextOptions): SslContext {
    const method = this.#functions.TLS_server_method();
    return this.#material.makeContext(method, (context) => this.#configure(context, options));
  }

  #configure(context: bigint, options: ServerContextOptions): void {
    const { SSL_CTX_callback_ctrl, SSL_CTX_set_alpn_select_cb, SSL_CTX_set_verify } = this.#functions;
    const { SSL_CTX_set_num_tickets, SSL_CTX_set_options } = this.#functions;
    const { alpn, asksClient } = options;
    this.#material.setCommon(context, options);
    this.#material.setKeyPair(context, options);
    SSL_CTX_set_num_tickets(context, TICKETS);
    SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB, this.#onServerName);
    if (alpn.length > 0) {
      if (this.#onAlpn === NULL) this.#onAlpn = this.#openOnAlpn();
      SSL_CTX_set_alpn_select_cb(context, this.#onAlpn, BigInt(this.#numberOf(alpn)));
    }
    SSL_CTX_set_verify(context, asksClient ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, this.#onVerify);
    // A ticket would stand for a certificate that is not shown again.
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

  #numberOf(alpn: readonly string[]): number {
    const found = this.#alpns.findIndex((one) => one.join("\0") === alpn.join("\0"));
    return found >= 0 ? found : this.#alpns.push(alpn) - 1;
  }

  /** Called by the library. `offered`: names with a length in front of each; what is chosen is pointed to where it lies. */
  #selectAlpn(out: bigint, outLength: bigint, offered: bigint, size: number, number: number): number {
    const wanted = this.#alpns[number] ?? [];
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
