/** Single blocks of AES-128 (EVP_EncryptInit(3)) by the libcrypto inside the Node binary, each key in a context that its owner keeps. */
import type * as Ffi from "node:ffi";
import { MINUS_ONE, WORDS } from "./machine-words.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  EVP_CIPHER_fetch: { arguments: WORDS[3], return: "pointer" },
  EVP_CIPHER_CTX_new: { arguments: [], return: "pointer" },
  EVP_CIPHER_CTX_free: { arguments: ["pointer"], return: "void" },
  EVP_CIPHER_CTX_set_padding: { arguments: WORDS[2], return: "i32" },
  EVP_CipherInit_ex: { arguments: WORDS[6], return: "i32" },
  EVP_CipherUpdate: { arguments: WORDS[5], return: "i32" },
} as const;

export const BLOCK_BYTES = 16;
// Memory: IN(16) OUT(16, and as much again: room that the library may ask for) LENGTH(8) KEY(16)
const OUT_AT = BLOCK_BYTES;
const LENGTH_AT = OUT_AT + 2 * BLOCK_BYTES;
const KEY_AT = LENGTH_AT + 8;
const MEMORY_BYTES = KEY_AT + BLOCK_BYTES;
const DIRECTIONS = { encrypt: 1n, decrypt: 0n } as const;
const SIZE = BigInt(BLOCK_BYTES);
const NULL = 0n;

/** Of one thread, for as long as it lives. */
export class BlockCipher {
  /** What is to be encrypted or decrypted. */
  readonly from: Buffer;
  /** What became of it in the context that was used last. */
  readonly to: Buffer;
  readonly #functions;
  readonly #fromAt: bigint;
  readonly #toAt: bigint;
  readonly #lengthAt: bigint;
  readonly #key: Buffer;
  readonly #keyAt: bigint;
  readonly #cipher: bigint;
  #once = NULL;

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): BlockCipher | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new BlockCipher(ffi);
    } catch {
      return null; // a runtime with another libcrypto, or linked without names: node:crypto is there
    }
  }

  constructor(ffi: typeof Ffi) {
    const memory = Buffer.from(new ArrayBuffer(MEMORY_BYTES));
    this.from = memory.subarray(0, BLOCK_BYTES);
    this.to = memory.subarray(OUT_AT, OUT_AT + BLOCK_BYTES);
    this.#functions = ffi.dlopen(null, SIGNATURES).functions;
    this.#fromAt = ffi.getRawPointer(memory);
    this.#toAt = this.#fromAt + BigInt(OUT_AT);
    this.#lengthAt = this.#fromAt + BigInt(LENGTH_AT);
    this.#key = memory.subarray(KEY_AT);
    this.#keyAt = this.#fromAt + BigInt(KEY_AT);
    memory.write("AES-128-ECB\0", "latin1");
    this.#cipher = this.#functions.EVP_CIPHER_fetch(NULL, this.#fromAt, NULL);
    if (this.#cipher === NULL) throw new Error("libcrypto does not know AES-128-ECB");
  }

  /** The context of a key of 16 bytes; the caller frees it. */
  open(key: Uint8Array, direction: keyof typeof DIRECTIONS): bigint {
    checkSize(key);
    const { EVP_CIPHER_CTX_new, EVP_CIPHER_CTX_set_padding } = this.#functions;
    const context = EVP_CIPHER_CTX_new();
    const isReady =
      context !== NULL &&
      this.#start(context, this.#cipher, key, DIRECTIONS[direction]) &&
      EVP_CIPHER_CTX_set_padding(context, NULL) === 1;
    if (isReady) return context;
    this.free([context]);
    throw new Error("libcrypto has no memory for a cipher context");
  }

  #start(context: bigint, cipher: bigint, key: Uint8Array, direction: bigint): boolean {
    this.#key.set(key);
    const isStarted =
      this.#functions.EVP_CipherInit_ex(context, cipher, NULL, this.#keyAt, NULL, direction) === 1;
    this.#key.fill(0);
    return isStarted;
  }

  free(contexts: readonly bigint[]): void {
    for (const context of contexts) if (context !== NULL) this.#functions.EVP_CIPHER_CTX_free(context);
  }

  /** `from` to `to`, under a key of 16 bytes that is used once: one context takes one key after the other. */
  encryptOnce(key: Uint8Array): void {
    checkSize(key);
    if (this.#once === NULL) this.#once = this.open(key, "encrypt");
    else if (!this.#start(this.#once, NULL, key, MINUS_ONE)) throw new Error("libcrypto refuses a key");
    this.run(this.#once);
  }

  /** `from` to `to`. */
  run(context: bigint): void {
    if (this.#functions.EVP_CipherUpdate(context, this.#toAt, this.#lengthAt, this.#fromAt, SIZE) !== 1)
      throw new Error("libcrypto refuses a call that it took before");
  }
}

function checkSize(key: Uint8Array): void {
  if (key.length !== BLOCK_BYTES) throw new RangeError(`a key of ${key.length} bytes`);
}
