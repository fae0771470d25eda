/** The first bytes of SHAKE128 (FIPS 202) by the libcrypto inside the Node binary. */
import type * as Ffi from "node:ffi";
import { WORDS } from "./machine-words.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  EVP_MD_fetch: { arguments: WORDS[3], return: "pointer" },
  EVP_MD_CTX_new: { arguments: [], return: "pointer" },
  EVP_DigestInit_ex2: { arguments: WORDS[3], return: "i32" },
  EVP_DigestUpdate: { arguments: WORDS[3], return: "i32" },
  EVP_DigestFinalXOF: { arguments: WORDS[3], return: "i32" },
} as const;

// Memory: SEED(64) OUT(168, the rate: what one permutation gives)
const MAX_SEED_BYTES = 64;
const BLOCK_BYTES = 168;
const NULL = 0n;

/** Of one thread, for as long as it lives. */
export class Shake128 {
  readonly #functions;
  readonly #memory = new Uint8Array(new ArrayBuffer(MAX_SEED_BYTES + BLOCK_BYTES));
  readonly #seedAt: bigint;
  readonly #outAt: bigint;
  readonly #kind: bigint;
  readonly #context: bigint;

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): Shake128 | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new Shake128(ffi);
    } catch {
      return null; // a runtime with another libcrypto, or linked without names
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#functions = ffi.dlopen(null, SIGNATURES).functions;
    this.#seedAt = ffi.getRawPointer(this.#memory);
    this.#outAt = this.#seedAt + BigInt(MAX_SEED_BYTES);
    this.#memory.set(Buffer.from("SHAKE-128\0"));
    this.#kind = this.#functions.EVP_MD_fetch(NULL, this.#seedAt, NULL);
    this.#context = this.#functions.EVP_MD_CTX_new();
    if (this.#kind === NULL || this.#context === NULL) throw new Error("libcrypto has no SHAKE128");
  }

  /** 168 bytes, of a seed of 64 bytes at most. */
  firstBlock(seed: Uint8Array): Uint8Array {
    const { EVP_DigestInit_ex2, EVP_DigestUpdate, EVP_DigestFinalXOF } = this.#functions;
    if (seed.length > MAX_SEED_BYTES) throw new RangeError(`a seed of ${seed.length} bytes`);
    this.#memory.set(seed);
    const isDone =
      EVP_DigestInit_ex2(this.#context, this.#kind, NULL) === 1 &&
      EVP_DigestUpdate(this.#context, this.#seedAt, BigInt(seed.length)) === 1 &&
      EVP_DigestFinalXOF(this.#context, this.#outAt, BigInt(BLOCK_BYTES)) === 1;
    if (!isDone) throw new Error("libcrypto computes no SHAKE128");
    return this.#memory.slice(MAX_SEED_BYTES);
  }
}
