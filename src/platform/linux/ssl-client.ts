/** Outbound TLS by the libssl inside the Node binary: verification, ClientHello, result. For the main thread. */
import type * as Ffi from "node:ffi";
import { openTickets, type SslTickets, TICKET_CALLS } from "./ssl-tickets.ts";
import { SslMaterial, type CommonSettings, type KeyPair } from "./ssl-material.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  ...TICKET_CALLS,
  TLS_client_method: { arguments: [], return: "pointer" },
  SSL_CTX_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_CTX_set_verify: { arguments: ["pointer", "i32", "pointer"], return: "void" },
  SSL_CTX_set1_cert_store: { arguments: ["pointer", "pointer"], return: "void" },
  SSL_CTX_up_ref: { arguments: ["pointer"], return: "i32" },
  SSL_CTX_free: { arguments: ["pointer"], return: "void" },
  SSL_new: { arguments: ["pointer"], return: "pointer" },
  SSL_free: { arguments: ["pointer"], return: "void" },
  SSL_set_fd: { arguments: ["pointer", "i32"], return: "i32" },
  SSL_set_connect_state: { arguments: ["pointer"], return: "void" },
  SSL_set_read_ahead: { arguments: ["pointer", "i32"], return: "void" },
  SSL_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_set_alpn_protos: { arguments: ["pointer", "pointer", "u32"], return: "i32" },
  SSL_get0_peer_certificate: { arguments: ["pointer"], return: "pointer" },
  SSL_get0_verified_chain: { arguments: ["pointer"], return: "pointer" },
  SSL_get_verify_result: { arguments: ["pointer"], return: "i64" },
  X509_verify_cert_error_string: { arguments: ["i64"], return: "pointer" },
  X509_STORE_new: { arguments: [], return: "pointer" },
  X509_STORE_add_cert: { arguments: ["pointer", "pointer"], return: "i32" },
  X509_STORE_free: { arguments: ["pointer"], return: "void" },
  X509_free: { arguments: ["pointer"], return: "void" },
  i2d_X509: { arguments: ["pointer", "pointer"], return: "i32" },
  OPENSSL_sk_num: { arguments: ["pointer"], return: "i32" },
  OPENSSL_sk_value: { arguments: ["pointer", "i32"], return: "pointer" },
  ERR_clear_error: { arguments: [], return: "void" },
} as const;

// openssl/ssl.h.in and openssl/tls1.h of OpenSSL 3
const SSL_CTRL_SET_TLSEXT_HOSTNAME = 55;
const SSL_CTRL_SET_GROUPS_LIST = 92;
const SSL_CTRL_SET_SIGALGS_LIST = 98;
const SSL_VERIFY_NONE = 0;
const SSL_VERIFY_PEER = 1;
const X509_V_OK = 0n;
const NULL = 0n;

/** More certificates than a sane chain has; a longer one is cut. */
const MAX_CHAIN = 10;

export interface ClientContextOptions extends CommonSettings {
  /** Key exchanges and signature algorithms, in the order of preference, as OpenSSL writes lists of them. */
  readonly groups: string;
  readonly signatures: string;
  /** Shown where a server asks for it; null: none is. */
  readonly keyPair: KeyPair | null;
  /** Null: chains end nowhere. */
  readonly authorities: SslHandle | null;
  /** Aborts the handshake with an alert when the server's chain does not end at a trusted authority. */
  readonly verifies: boolean;
}

export interface ClientConnection {
  readonly fd: number;
  /** For SNI; empty: none is sent. */
  readonly serverName: string;
  /** Each protocol with its length in front (RFC 7301 §3.1); empty: no ALPN extension. */
  readonly alpn: Uint8Array;
  /** The library may read more than one record. */
  readonly readAhead: boolean;
  /** Of earlier connections with the same server; null: none is offered. */
  readonly tickets: SslTickets | null;
}

/**
 * An object of the library that is freed when this handle is collected. Connections keep a reference to the handles
 * that they use.
 */
export class SslHandle {
  readonly address: bigint;

  constructor(address: bigint) {
    this.address = address;
  }
}

export class SslClients {
  /** Of one node. */
  readonly makeTickets: () => SslTickets;
  readonly #functions;
  readonly #material: SslMaterial;
  readonly #ffi: typeof Ffi;
  readonly #contexts: FinalizationRegistry<bigint>;
  readonly #stores: FinalizationRegistry<bigint>;
  /** For one pointer that the library moves. */
  readonly #place = new BigUint64Array(new ArrayBuffer(8));
  readonly #placeAt: bigint;

  /** Null where this runtime has no FFI, or its libssl hides what is needed. */
  static open(): SslClients | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new SslClients(ffi);
    } catch {
      return null; // a runtime linked without these names: node:tls is there
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#functions = ffi.dlopen(null, SIGNATURES).functions;
    this.makeTickets = openTickets(this.#functions);
    this.#material = new SslMaterial(ffi);
    this.#placeAt = ffi.getRawPointer(this.#place);
    this.#contexts = new FinalizationRegistry((address) => this.#functions.SSL_CTX_free(address));
    this.#stores = new FinalizationRegistry((address) => this.#functions.X509_STORE_free(address));
  }

  /** The authorities of a PEM text. Throws an `Error` where it has none or they cannot be read; 265 took 15 ms and 0.8 MiB. */
  makeStore(pem: string): SslHandle {
    const { X509_STORE_new, X509_STORE_add_cert, X509_STORE_free, X509_free } = this.#functions;
    const store = X509_STORE_new();
    if (store === NULL) throw this.#material.failure("no memory for TLS");
    const added = this.#material.readCertificates(pem).map((one) => {
      const ok = X509_STORE_add_cert(store, one) === 1;
      X509_free(one); // the store took a reference of its own
      return ok;
    });
    if (added.length === 0 || added.includes(false)) {
      X509_STORE_free(store);
      throw this.#material.failure("the authorities");
    }
    return this.#kept(store, this.#stores);
  }

  /** Throws an `Error` with the library's reason where certificate, key or lists cannot be used. */
  make(options: ClientContextOptions): SslHandle {
    const method = this.#functions.TLS_client_method();
    const made = this.#material.makeContext(method, (context) => this.#configure(context, options));
    return this.#kept(made.address, this.#contexts);
  }

  #kept(address: bigint, registry: FinalizationRegistry<bigint>): SslHandle {
    const handle = new SslHandle(address);
    registry.register(handle, address);
    return handle;
  }

  #configure(context: bigint, options: ClientContextOptions): void {
    const { SSL_CTX_set_verify, SSL_CTX_set1_cert_store } = this.#functions;
    const { groups, signatures, keyPair, authorities, verifies } = options;
    this.#material.setCommon(context, options);
    this.#setList(context, SSL_CTRL_SET_GROUPS_LIST, groups);
    this.#setList(context, SSL_CTRL_SET_SIGALGS_LIST, signatures);
    if (keyPair !== null) this.#material.setKeyPair(context, keyPair);
    if (authorities !== null) SSL_CTX_set1_cert_store(context, authorities.address);
    SSL_CTX_set_verify(context, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
  }

  #setList(context: bigint, what: number, list: string): void {
    const text = Buffer.from(`${list}\0`);
    if (this.#functions.SSL_CTX_ctrl(context, what, 0n, this.#ffi.getRawPointer(text)) !== 1n)
      throw this.#material.failure(list);
    text.fill(0); // it lives to here
  }

  /** The context is kept until as many calls of `release`, whatever else lets go of it. */
  hold({ address }: SslHandle): boolean {
    return this.#functions.SSL_CTX_up_ref(address) === 1;
  }

  release({ address }: SslHandle): void {
    this.#functions.SSL_CTX_free(address);
  }

  /** Nothing is said yet. Zero: the library has no memory, or does not take the name. */
  connect({ address }: SslHandle, { fd, serverName, alpn, readAhead, tickets }: ClientConnection): bigint {
    const { SSL_new, SSL_free, SSL_set_fd, SSL_set_connect_state, SSL_set_read_ahead } = this.#functions;
    const { SSL_set_alpn_protos, ERR_clear_error } = this.#functions;
    const ssl = SSL_new(address);
    const isReady =
      ssl !== NULL &&
      SSL_set_fd(ssl, fd) === 1 &&
      (serverName === "" || this.#nameServer(ssl, serverName)) &&
      (alpn.length === 0 || SSL_set_alpn_protos(ssl, alpn, alpn.length) === 0); // here 0 is the good answer
    if (isReady) {
      SSL_set_connect_state(ssl);
      SSL_set_read_ahead(ssl, readAhead ? 1 : 0);
      tickets?.offer(ssl, performance.now());
      return ssl;
    }
    if (ssl !== NULL) SSL_free(ssl);
    ERR_clear_error();
    return 0n;
  }

  #nameServer(ssl: bigint, name: string): boolean {
    const text = Buffer.from(`${name}\0`);
    const at = this.#ffi.getRawPointer(text);
    const answer = this.#functions.SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0n, at);
    text.fill(0); // it lives to here
    return answer === 1n;
  }

  /** DER of the certificate that the server showed; null: none. */
  certificateOf(ssl: bigint): Buffer | null {
    const certificate = this.#functions.SSL_get0_peer_certificate(ssl);
    return certificate === NULL ? null : this.#der(certificate);
  }

  /**
   * DER of the server's certificate and of those that issued it, one by the next, as far as the library found them among
   * those that the server showed and the authorities. That is not to say that it believes them.
   */
  chainOf(ssl: bigint): Buffer[] {
    const { SSL_get0_verified_chain, OPENSSL_sk_num, OPENSSL_sk_value } = this.#functions;
    const chain = SSL_get0_verified_chain(ssl);
    if (chain === NULL) return [];
    const size = Math.min(OPENSSL_sk_num(chain), MAX_CHAIN);
    return Array.from({ length: size }, (_, at) => this.#der(OPENSSL_sk_value(chain, at)));
  }

  #der(certificate: bigint): Buffer {
    const bytes = Buffer.alloc(Math.max(0, this.#functions.i2d_X509(certificate, NULL)));
    this.#place[0] = this.#ffi.getRawPointer(bytes);
    this.#functions.i2d_X509(certificate, this.#placeAt);
    return bytes;
  }

  /** Why the library rejects the server's certificate; null: it accepts it, or saw none. */
  refusalOf(ssl: bigint): string | null {
    const result = this.#functions.SSL_get_verify_result(ssl);
    if (result === X509_V_OK) return null;
    return (
      this.#material.text(this.#functions.X509_verify_cert_error_string(result)) ?? "it cannot be verified"
    );
  }
}
