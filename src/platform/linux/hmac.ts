/** HMAC by the libcrypto inside the Node binary (HMAC(3)): one call, where `node:crypto` makes a key, an object and a context. */
import type * as Ffi from "node:ffi";

const POINTER = "pointer";
const SIGNATURES = {
  EVP_MD_fetch: { arguments: [POINTER, POINTER, POINTER], return: POINTER },
  HMAC: { arguments: [POINTER, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER], return: POINTER },
} as const;

const HASHES = {
  sha256: { name: "SHA2-256\0", bytes: 32 },
  sha384: { name: "SHA2-384\0", bytes: 48 },
} as const;
export type HmacHash = keyof typeof HASHES;

// Scratch: LENGTH(8) OUT(64) KEY(256) DATA(4096)
const OUT_AT = 8;
const KEY_AT = 72;
const MAX_KEY_BYTES = 256;
const DATA_AT = KEY_AT + MAX_KEY_BYTES;
const MAX_DATA_BYTES = 4096;
const NULL = 0n;

/** Of one thread. */
export class Hmac {
  readonly #library;
  readonly #functions;
  readonly #scratch = Buffer.from(new ArrayBuffer(DATA_AT + MAX_DATA_BYTES));
  readonly #length: bigint;
  readonly #out: bigint;
  readonly #key: bigint;
  readonly #data: bigint;
  /** Addresses of EVP_MD, for as long as the thread lives. */
  readonly #digests: Readonly<Record<HmacHash, bigint>>;

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): Hmac | null {
    const ffi = process.platform === "linux" ? process.getBuiltinModule("node:ffi") : undefined;
    if (ffi === undefined) return null;
    try {
      return new Hmac(ffi);
    } catch {
      return null; // a runtime with another libcrypto, or linked without names: node:crypto is there
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#functions = this.#library.functions;
    const start = ffi.getRawPointer(this.#scratch);
    this.#length = start;
    this.#out = start + BigInt(OUT_AT);
    this.#key = start + BigInt(KEY_AT);
    this.#data = start + BigInt(DATA_AT);
    this.#digests = { sha256: this.#fetch("sha256"), sha384: this.#fetch("sha384") };
  }

  #fetch(hash: HmacHash): bigint {
    this.#scratch.write(HASHES[hash].name, DATA_AT, "latin1");
    const digest = this.#functions.EVP_MD_fetch(NULL, this.#data, NULL);
    if (digest === NULL) throw new Error(`libcrypto does not know ${hash}`);
    return digest;
  }

  /** Null: key or data are longer than what this is made for. The key is wiped. */
  of(hash: HmacHash, key: Uint8Array, data: readonly Uint8Array[]): Buffer | null {
    const scratch = this.#scratch;
    let end = DATA_AT;
    for (const part of data) {
      if (end + part.length > scratch.length) return null;
      scratch.set(part, end);
      end += part.length;
    }
    if (key.length > MAX_KEY_BYTES) return null;
    scratch.set(key, KEY_AT);
    const [keySize, size] = [BigInt(key.length), BigInt(end - DATA_AT)];
    const made = this.#functions.HMAC(
      this.#digests[hash],
      this.#key,
      keySize,
      this.#data,
      size,
      this.#out,
      this.#length,
    );
    scratch.fill(0, KEY_AT, KEY_AT + key.length);
    if (made === NULL) throw new Error("libcrypto computes no HMAC");
    return Buffer.from(scratch.subarray(OUT_AT, OUT_AT + HASHES[hash].bytes));
  }
}
