/** Chains of certificates, verified by the libcrypto inside the Node binary as its libssl does it for a client. */
import type * as Ffi from "node:ffi";
import { int32At } from "#lib/at.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  TLS_client_method: { arguments: [], return: "pointer" },
  SSL_CTX_new: { arguments: ["pointer"], return: "pointer" },
  SSL_CTX_free: { arguments: ["pointer"], return: "void" },
  SSL_CTX_get_security_level: { arguments: ["pointer"], return: "i32" },
  X509_STORE_CTX_new: { arguments: [], return: "pointer" },
  X509_STORE_CTX_free: { arguments: ["pointer"], return: "void" },
  X509_STORE_CTX_init: { arguments: ["pointer", "pointer", "pointer", "pointer"], return: "i32" },
  X509_STORE_CTX_set_default: { arguments: ["pointer", "pointer"], return: "i32" },
  X509_STORE_CTX_get0_param: { arguments: ["pointer"], return: "pointer" },
  X509_STORE_CTX_get0_chain: { arguments: ["pointer"], return: "pointer" },
  X509_STORE_CTX_get_error: { arguments: ["pointer"], return: "i32" },
  X509_VERIFY_PARAM_set_auth_level: { arguments: ["pointer", "i32"], return: "void" },
  X509_verify_cert: { arguments: ["pointer"], return: "i32" },
  X509_verify_cert_error_string: { arguments: ["i64"], return: "pointer" },
  d2i_X509: { arguments: ["pointer", "pointer", "i64"], return: "pointer" },
  i2d_X509: { arguments: ["pointer", "pointer"], return: "i32" },
  X509_get0_notAfter: { arguments: ["pointer"], return: "pointer" },
  ASN1_TIME_diff: { arguments: ["pointer", "pointer", "pointer", "pointer"], return: "i32" },
  X509_STORE_up_ref: { arguments: ["pointer"], return: "i32" },
  X509_STORE_free: { arguments: ["pointer"], return: "void" },
  X509_free: { arguments: ["pointer"], return: "void" },
  OPENSSL_sk_new_null: { arguments: [], return: "pointer" },
  OPENSSL_sk_push: { arguments: ["pointer", "pointer"], return: "i32" },
  OPENSSL_sk_free: { arguments: ["pointer"], return: "void" },
  OPENSSL_sk_num: { arguments: ["pointer"], return: "i32" },
  OPENSSL_sk_value: { arguments: ["pointer", "i32"], return: "pointer" },
  ERR_clear_error: { arguments: [], return: "void" },
} as const;

/** The purpose and trust that libssl asks of a server's chain. */
const FOR_SERVERS = "ssl_server\0";
const NULL = 0n;
const UNSPECIFIED = 1;
const MAX_CHAIN = 16;

export interface VerifiedChain {
  /** The library's number of the reason (openssl/x509_vfy.h); 0: it accepts the chain. */
  readonly error: number;
  /** Why the library rejects it; null: it accepts it. */
  readonly refusal: string | null;
  /** DER of the certificate and of those that issued it, as far as they were found; not to say that they are believed. */
  readonly found: readonly Buffer[];
  /** For so long from now on none of those found runs out; 0: the chain is not accepted. */
  readonly lastsMs: number;
}

/** For one thread. */
export class ChainVerifier {
  readonly #ffi: typeof Ffi;
  readonly #functions;
  readonly #level: number;
  /** For one pointer that the library moves. */
  readonly #place = new BigUint64Array(new ArrayBuffer(8));
  readonly #days = new Int32Array(this.#place.buffer);
  readonly #placeAt: bigint;
  /** Its address was given out, so it is kept. */
  readonly #purpose = Buffer.from(FOR_SERVERS);
  readonly #purposeAt: bigint;

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): ChainVerifier | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new ChainVerifier(ffi);
    } catch {
      return null; // a runtime linked without these names: node:tls is there
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#functions = ffi.dlopen(null, SIGNATURES).functions;
    this.#placeAt = ffi.getRawPointer(this.#place);
    this.#purposeAt = ffi.getRawPointer(this.#purpose);
    this.#level = this.#securityLevel();
  }

  /** How weak a key or a signature may be: libssl's default, which its connections have as well. */
  #securityLevel(): number {
    const { TLS_client_method, SSL_CTX_new, SSL_CTX_free, SSL_CTX_get_security_level } = this.#functions;
    const context = SSL_CTX_new(TLS_client_method());
    if (context === NULL) throw new Error("no memory for TLS");
    const level = SSL_CTX_get_security_level(context);
    SSL_CTX_free(context);
    return level;
  }

  /** Keeps the store alive, until as many calls of `release`. */
  hold(store: bigint): void {
    if (store !== NULL) this.#functions.X509_STORE_up_ref(store);
  }

  release(store: bigint): void {
    if (store !== NULL) this.#functions.X509_STORE_free(store);
  }

  /** `store`: address of an X509_STORE that lives on. `chain`: DER, the server's own certificate first, one at least. */
  verify(store: bigint, chain: readonly Buffer[]): VerifiedChain {
    const { OPENSSL_sk_new_null, OPENSSL_sk_push, OPENSSL_sk_free, X509_free } = this.#functions;
    const read = chain.slice(0, MAX_CHAIN).map((der) => this.#read(der));
    const [leaf = NULL, ...others] = read;
    const untrusted = OPENSSL_sk_new_null();
    try {
      if (read.includes(NULL) || untrusted === NULL) return refused("a certificate that cannot be read");
      for (const one of others) OPENSSL_sk_push(untrusted, one);
      return this.#verify(store, leaf, untrusted);
    } finally {
      if (untrusted !== NULL) OPENSSL_sk_free(untrusted);
      for (const one of read) if (one !== NULL) X509_free(one);
      this.#functions.ERR_clear_error();
    }
  }

  #verify(store: bigint, leaf: bigint, untrusted: bigint): VerifiedChain {
    const calls = this.#functions;
    const context = calls.X509_STORE_CTX_new();
    if (context === NULL) return refused("no memory is left");
    try {
      const isReady =
        calls.X509_STORE_CTX_init(context, store, leaf, untrusted) === 1 &&
        calls.X509_STORE_CTX_set_default(context, this.#purposeAt) === 1;
      if (!isReady) return refused("it cannot be verified");
      calls.X509_VERIFY_PARAM_set_auth_level(calls.X509_STORE_CTX_get0_param(context), this.#level);
      const isGood = calls.X509_verify_cert(context) === 1;
      const found = this.#chainOf(context);
      if (isGood) return { error: 0, refusal: null, found, lastsMs: this.#lasting(context) };
      const error = calls.X509_STORE_CTX_get_error(context);
      return { error, refusal: this.#reason(error), found, lastsMs: 0 };
    } finally {
      calls.X509_STORE_CTX_free(context);
    }
  }

  #read(der: Buffer): bigint {
    this.#place[0] = this.#ffi.getRawPointer(der);
    return this.#functions.d2i_X509(NULL, this.#placeAt, BigInt(der.length));
  }

  #chainOf(context: bigint): Buffer[] {
    return this.#certificatesOf(context).map((certificate) => this.#der(certificate));
  }

  #certificatesOf(context: bigint): bigint[] {
    const { X509_STORE_CTX_get0_chain, OPENSSL_sk_num, OPENSSL_sk_value } = this.#functions;
    const chain = X509_STORE_CTX_get0_chain(context);
    if (chain === NULL) return [];
    const size = Math.min(Math.max(0, OPENSSL_sk_num(chain)), MAX_CHAIN);
    return Array.from({ length: size }, (_, at) => OPENSSL_sk_value(chain, at));
  }

  #lasting(context: bigint): number {
    return Math.min(...this.#certificatesOf(context).map((certificate) => this.#lifetimeMs(certificate)));
  }

  /** Days and seconds are written where pointers are written at other times. */
  #lifetimeMs(certificate: bigint): number {
    const { X509_get0_notAfter, ASN1_TIME_diff } = this.#functions;
    const end = X509_get0_notAfter(certificate);
    const isKnown = ASN1_TIME_diff(this.#placeAt, this.#placeAt + 4n, NULL, end) === 1;
    const [days, seconds] = [int32At(this.#days, 0), int32At(this.#days, 1)];
    return isKnown ? Math.max(0, (days * 86_400 + seconds) * 1000) : 0;
  }

  #der(certificate: bigint): Buffer {
    const bytes = Buffer.alloc(Math.max(0, this.#functions.i2d_X509(certificate, NULL)));
    this.#place[0] = this.#ffi.getRawPointer(bytes);
    this.#functions.i2d_X509(certificate, this.#placeAt);
    return bytes;
  }

  #reason(error: number): string {
    const text = this.#functions.X509_verify_cert_error_string(BigInt(error));
    return (text === NULL ? null : this.#ffi.toString(text)) ?? "it cannot be verified";
  }
}

function refused(refusal: string): VerifiedChain {
  return { error: UNSPECIFIED, refusal, found: [], lastsMs: 0 };
}
