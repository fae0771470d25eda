/** BLAKE2b by the libcrypto inside the Node binary, for digests of every datagram. */
import type * as Ffi from "node:ffi";
import { WORDS } from "./machine-words.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  EVP_MD_fetch: { arguments: WORDS[3], return: "pointer" },
  EVP_MD_CTX_new: { arguments: [], return: "pointer" },
  EVP_MD_CTX_free: { arguments: ["pointer"], return: "void" },
  EVP_DigestInit_ex2: { arguments: WORDS[3], return: "i32" },
  EVP_MD_CTX_copy_ex: { arguments: WORDS[2], return: "i32" },
  EVP_DigestUpdate: { arguments: WORDS[3], return: "i32" },
  EVP_DigestFinal_ex: { arguments: WORDS[3], return: "i32" },
  ERR_clear_error: { arguments: [], return: "void" },
} as const;

// openssl/core.h: OSSL_PARAM is KEY(8) TYPE(4) UNUSED(4) DATA(8) DATA_SIZE(8) RETURN_SIZE(8); one of zeros ends a list.
const PARAM_BYTES = 40;
const UNSIGNED_INTEGER = 2;
const WORD_BYTES = 8n;
const NULL = 0n;

/** Of the thread that opened it. */
export class Blake2bLibrary {
  readonly ffi: typeof Ffi;
  readonly functions;
  /** Kept by the library as long as a context uses it. */
  readonly #kind: bigint;
  readonly #contexts: FinalizationRegistry<readonly bigint[]>;

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): Blake2bLibrary | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new Blake2bLibrary(ffi);
    } catch {
      return null; // a runtime linked without these names
    }
  }

  constructor(ffi: typeof Ffi) {
    this.ffi = ffi;
    this.functions = ffi.dlopen(null, SIGNATURES).functions;
    const name = Buffer.from("BLAKE2B-512\0");
    this.#kind = this.functions.EVP_MD_fetch(NULL, ffi.getRawPointer(name), NULL);
    name.fill(0); // it lives to here
    if (this.#kind === NULL) throw new Error("libcrypto has no BLAKE2b");
    this.#contexts = new FinalizationRegistry((contexts) => this.free(contexts));
  }

  free(contexts: readonly bigint[]): void {
    for (const context of contexts) if (context !== NULL) this.functions.EVP_MD_CTX_free(context);
  }

  /** Digests of `sizeBytes` of `prefix` and `tailBytes` behind it. Throws where the library has no memory. */
  make(prefix: Uint8Array, tailBytes: number, sizeBytes: number): Blake2b {
    const { EVP_MD_CTX_new, EVP_DigestUpdate, ERR_clear_error } = this.functions;
    const [first, copy] = [EVP_MD_CTX_new(), EVP_MD_CTX_new()];
    const key = Buffer.from(prefix);
    const isReady =
      first !== NULL &&
      copy !== NULL &&
      this.#begin(first, BigInt(sizeBytes)) &&
      EVP_DigestUpdate(first, this.ffi.getRawPointer(key), BigInt(key.length)) === 1;
    key.fill(0); // it lives to here
    if (!isReady) {
      this.free([first, copy]);
      ERR_clear_error();
      throw new Error("libcrypto has no memory for a digest");
    }
    const made = new Blake2b(this, { first, copy, tailBytes, sizeBytes });
    this.#contexts.register(made, [first, copy]);
    return made;
  }

  #begin(context: bigint, sizeBytes: bigint): boolean {
    const { ffi } = this;
    const [name, size, params] = [Buffer.from("size\0"), Buffer.alloc(8), Buffer.alloc(2 * PARAM_BYTES)];
    size.writeBigUInt64LE(sizeBytes);
    params.writeBigUInt64LE(ffi.getRawPointer(name), 0);
    params.writeUInt32LE(UNSIGNED_INTEGER, 8);
    params.writeBigUInt64LE(ffi.getRawPointer(size), 16);
    params.writeBigUInt64LE(WORD_BYTES, 24);
    const answer = this.functions.EVP_DigestInit_ex2(context, this.#kind, ffi.getRawPointer(params));
    for (const held of [name, size, params]) held.fill(0); // they live to here
    return answer === 1;
  }
}

interface Contexts {
  /** With the prefix in it. */
  readonly first: bigint;
  readonly copy: bigint;
  readonly tailBytes: number;
  readonly sizeBytes: number;
}

class Blake2b {
  /** The bytes behind the prefix; to be written before `run`. */
  readonly tail: Uint8Array<ArrayBuffer>;
  /** The same memory each time. */
  readonly digest: Uint8Array<ArrayBuffer>;
  readonly #library: Blake2bLibrary;
  readonly #first: bigint;
  readonly #copy: bigint;
  readonly #tailAt: bigint;
  readonly #tailBytes: bigint;
  readonly #digestAt: bigint;

  constructor(library: Blake2bLibrary, { first, copy, tailBytes, sizeBytes }: Contexts) {
    this.tail = new Uint8Array(new ArrayBuffer(tailBytes));
    this.digest = new Uint8Array(new ArrayBuffer(sizeBytes));
    this.#library = library;
    [this.#first, this.#copy] = [first, copy];
    this.#tailAt = library.ffi.getRawPointer(this.tail);
    this.#tailBytes = BigInt(tailBytes);
    this.#digestAt = library.ffi.getRawPointer(this.digest);
  }

  /** Of the prefix and `tail`, into `digest`. */
  run(): void {
    const { EVP_MD_CTX_copy_ex, EVP_DigestUpdate, EVP_DigestFinal_ex } = this.#library.functions;
    const isDone =
      EVP_MD_CTX_copy_ex(this.#copy, this.#first) === 1 &&
      EVP_DigestUpdate(this.#copy, this.#tailAt, this.#tailBytes) === 1 &&
      EVP_DigestFinal_ex(this.#copy, this.#digestAt, NULL) === 1;
    if (!isDone) throw new Error("libcrypto has no memory for a digest");
  }
}
