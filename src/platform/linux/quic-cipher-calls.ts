/** The calls of libcrypto that protect packets of QUIC, and the memory that they share. Of one thread. */
import type * as Ffi from "node:ffi";
import { WORDS } from "./machine-words.ts";
import { Words } from "./packet-memory.ts";

const SIGNATURES = {
  EVP_CIPHER_CTX_new: { arguments: [], return: "pointer" },
  EVP_CIPHER_CTX_free: { arguments: ["pointer"], return: "void" },
  EVP_CIPHER_CTX_set_padding: { arguments: ["pointer", "i32"], return: "i32" },
  EVP_CIPHER_fetch: { arguments: WORDS[3], return: "pointer" },
  EVP_CipherInit_ex: { arguments: WORDS[6], return: "i32" },
  EVP_CipherUpdate: { arguments: WORDS[5], return: "i32" },
  EVP_CipherFinal_ex: { arguments: WORDS[3], return: "i32" },
  EVP_CIPHER_CTX_ctrl: { arguments: WORDS[4], return: "i32" },
  ERR_clear_error: { arguments: [], return: "void" },
} as const;

export const NULL = 0n;
/** Where the mask lies in the scratch: NONCE(12) .. LENGTH(4) .. END(16) MASK(32) ZEROS(16) KEY(32). */
export const MASK_AT = 64;
const NONCE_AT = 0;
const LENGTH_AT = 16;
const END_AT = 32;
const ZEROS_AT = 96;
const KEY_AT = 112;
const KEY_BYTES = 32;
/** No UDP payload is longer. */
const MOST_LENGTH = 65_535;

export class QuicCipherCalls {
  readonly functions;
  readonly scratch = new Uint8Array(new ArrayBuffer(KEY_AT + KEY_BYTES));
  readonly numbers = new DataView(this.scratch.buffer);
  /** Where foreign functions find and leave what `scratch` holds. */
  readonly nonceAt: bigint;
  readonly lengthAt: bigint;
  readonly endAt: bigint;
  readonly maskAt: bigint;
  readonly zerosAt: bigint;
  /** Lengths as machine words. */
  readonly lengths = new Words(0n, MOST_LENGTH);
  readonly #keyAt: bigint;
  readonly #library;
  /** Frees the context of a key that was collected without being closed. */
  readonly #forgotten = new FinalizationRegistry<bigint>((context) =>
    this.functions.EVP_CIPHER_CTX_free(context),
  );

  constructor(ffi: typeof Ffi) {
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.functions = this.#library.functions;
    const at = ffi.getRawPointer(this.scratch);
    this.nonceAt = at + BigInt(NONCE_AT);
    this.lengthAt = at + BigInt(LENGTH_AT);
    this.endAt = at + BigInt(END_AT);
    this.maskAt = at + BigInt(MASK_AT);
    this.zerosAt = at + BigInt(ZEROS_AT);
    this.#keyAt = at + BigInt(KEY_AT);
  }

  /** A cipher by its name, for as long as the thread lives. Throws where the library has none. */
  fetch(name: string): bigint {
    const text = new Uint8Array(this.scratch.buffer, KEY_AT, KEY_BYTES);
    text.set(Buffer.from(`${name}\0`));
    const found = this.functions.EVP_CIPHER_fetch(NULL, this.#keyAt, NULL);
    text.fill(0);
    if (found === NULL) throw new Error(`libcrypto has no ${name}`);
    return found;
  }

  /** A context that `owner` closes by `free`. Throws where the library refuses. */
  context(owner: object, cipher: bigint, key: Uint8Array, seals: boolean): bigint {
    const { EVP_CIPHER_CTX_new, EVP_CIPHER_CTX_free, EVP_CipherInit_ex, ERR_clear_error } = this.functions;
    const context = EVP_CIPHER_CTX_new();
    if (context === NULL) throw new Error("libcrypto has no memory for a cipher context");
    this.scratch.set(key, KEY_AT);
    const done = EVP_CipherInit_ex(context, cipher, NULL, this.#keyAt, NULL, seals ? 1n : 0n);
    this.scratch.fill(0, KEY_AT);
    if (done === 1) {
      this.#forgotten.register(owner, context, owner);
      return context;
    }
    EVP_CIPHER_CTX_free(context);
    ERR_clear_error();
    throw new Error("libcrypto refuses a key");
  }

  free(owner: object, context: bigint): void {
    this.#forgotten.unregister(owner);
    this.functions.EVP_CIPHER_CTX_free(context);
  }
}
