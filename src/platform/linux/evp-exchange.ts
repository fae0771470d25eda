/**
 * Key exchanges by the EVP interface of the libcrypto inside the Node binary (EVP_PKEY_generate(3), EVP_PKEY_derive(3),
 * EVP_PKEY_decapsulate(3)). One call of the library makes both halves of X25519MLKEM768; `node:crypto` needs six objects and
 * two exports in DER for it.
 */
import type * as Ffi from "node:ffi";
import { WORDS } from "./machine-words.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  EVP_PKEY_CTX_new_from_name: { arguments: WORDS[3], return: "pointer" },
  EVP_PKEY_CTX_new: { arguments: WORDS[2], return: "pointer" },
  EVP_PKEY_CTX_free: { arguments: ["pointer"], return: "void" },
  EVP_PKEY_keygen_init: { arguments: ["pointer"], return: "i32" },
  EVP_PKEY_generate: { arguments: WORDS[2], return: "i32" },
  EVP_PKEY_free: { arguments: ["pointer"], return: "void" },
  EVP_PKEY_get_raw_public_key: { arguments: WORDS[3], return: "i32" },
  EVP_PKEY_set1_encoded_public_key: { arguments: WORDS[3], return: "i32" },
  EVP_PKEY_new_raw_public_key_ex: { arguments: WORDS[5], return: "pointer" },
  EVP_PKEY_new_raw_private_key_ex: { arguments: WORDS[5], return: "pointer" },
  EVP_PKEY_derive_init: { arguments: ["pointer"], return: "i32" },
  EVP_PKEY_derive_set_peer_ex: { arguments: WORDS[3], return: "i32" },
  EVP_PKEY_derive: { arguments: WORDS[3], return: "i32" },
  EVP_PKEY_encapsulate_init: { arguments: WORDS[2], return: "i32" },
  EVP_PKEY_encapsulate: { arguments: WORDS[5], return: "i32" },
  EVP_PKEY_decapsulate_init: { arguments: WORDS[2], return: "i32" },
  EVP_PKEY_decapsulate: { arguments: WORDS[5], return: "i32" },
  ERR_clear_error: { arguments: [], return: "void" },
} as const;

/** Lengths on the wire: of the dialling side's share, of the answer, and of the secret. */
const SIZES = {
  X25519: { share: 32, answer: 32, secret: 32 },
  X25519MLKEM768: { share: 1216, answer: 1120, secret: 64 },
} as const;
/** The same as machine words. */
const WORDS_OF = {
  X25519: { share: 32n, answer: 32n, secret: 32n },
  X25519MLKEM768: { share: 1216n, answer: 1120n, secret: 64n },
} as const;
export type ExchangeName = keyof typeof SIZES;

// Scratch: POINTER(8) LENGTH(8) SECOND_LENGTH(8) .. IN(1216) OUT(1216) SECRET(64)
const LENGTH_AT = 8;
const SECOND_AT = 16;
const IN_AT = 64;
const OUT_AT = IN_AT + 1216;
const SECRET_AT = OUT_AT + 1216;
const SCRATCH_BYTES = SECRET_AT + 64;
const NULL = 0n;
/** Any 32 bytes are a public key of X25519, and a secret of zeros is refused when it is derived. */
const NOT_VALIDATED = 0n;

/** What an accepting side answers with, and the secret. */
export interface ExchangeAnswer {
  readonly share: Buffer;
  readonly secret: Buffer;
}

interface Kept {
  /** Address of an EVP_PKEY; 0: it was freed. */
  key: bigint;
  /** Address of an EVP_PKEY_CTX in which secrets of it are derived; 0: there is none yet. */
  context: bigint;
}

/** Of one thread. */
export class EvpExchanges {
  readonly #library;
  readonly #calls;
  readonly #scratch: Buffer;
  readonly #numbers: DataView;
  /** Addresses of the scratch and of places in it. */
  readonly #at: bigint;
  readonly #lengthAt: bigint;
  readonly #secondAt: bigint;
  readonly #inAt: bigint;
  readonly #outAt: bigint;
  readonly #secretAt: bigint;
  /** An X25519 key that becomes that of each peer: one that is made anew takes longer. */
  readonly #peer: bigint;
  /** Names that end with a zero, which the library is given; kept with their addresses. */
  readonly #names = new Map<ExchangeName, { readonly text: Buffer; readonly at: bigint }>();
  /** Contexts from which keys are generated, one for each exchange, for as long as the thread lives. */
  readonly #generators = new Map<ExchangeName, bigint>();
  /** Frees keys whose owner was collected without closing them. */
  readonly #forgotten = new FinalizationRegistry<Kept>((kept) => this.free(kept));

  /** Null where this runtime has no FFI, or its libcrypto does not know these exchanges. */
  static open(): EvpExchanges | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new EvpExchanges(ffi);
    } catch {
      return null; // a runtime with another libcrypto, or linked without names: node:crypto is there
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#calls = this.#library.functions;
    this.#scratch = Buffer.from(new ArrayBuffer(SCRATCH_BYTES));
    this.#numbers = new DataView(this.#scratch.buffer);
    this.#at = ffi.getRawPointer(this.#scratch);
    this.#lengthAt = this.#at + BigInt(LENGTH_AT);
    this.#secondAt = this.#at + BigInt(SECOND_AT);
    this.#inAt = this.#at + BigInt(IN_AT);
    this.#outAt = this.#at + BigInt(OUT_AT);
    this.#secretAt = this.#at + BigInt(SECRET_AT);
    for (const name of Object.keys(SIZES) as ExchangeName[]) {
      const text = Buffer.from(`${name}\0`);
      this.#names.set(name, { text, at: ffi.getRawPointer(text) });
      this.#generators.set(name, this.#generator(name));
    }
    this.#peer = this.#readPublic("X25519");
    if (this.#peer === NULL || !this.#setPeer()) throw new Error("libcrypto takes no public key of X25519");
  }

  #generator(name: ExchangeName): bigint {
    const context = this.#calls.EVP_PKEY_CTX_new_from_name(NULL, this.#nameAt(name), NULL);
    if (context !== NULL && this.#calls.EVP_PKEY_keygen_init(context) === 1) return context;
    this.#calls.EVP_PKEY_CTX_free(context);
    this.#calls.ERR_clear_error();
    throw new Error(`libcrypto does not know ${name}`);
  }

  #nameAt(name: ExchangeName): bigint {
    return this.#names.get(name)?.at ?? NULL;
  }

  /** A new pair. */
  generate(name: ExchangeName): EvpPair {
    this.#numbers.setBigUint64(0, NULL, true);
    const isMade = this.#calls.EVP_PKEY_generate(this.#generators.get(name) ?? NULL, this.#at) === 1;
    const key = this.#numbers.getBigUint64(0, true);
    if (!isMade || key === NULL) throw this.#failed(`generates no ${name}`);
    return this.#pairOf(name, key);
  }

  /** Of a private key of 32 bytes that is used many times. */
  keep(raw: Uint8Array): EvpPair {
    const { EVP_PKEY_new_raw_private_key_ex } = this.#calls;
    const { share: size } = SIZES.X25519;
    if (raw.length !== size) throw new RangeError(`X25519: a private key of ${raw.length} bytes`);
    this.#scratch.set(raw, SECRET_AT);
    const name = this.#nameAt("X25519");
    const key = EVP_PKEY_new_raw_private_key_ex(NULL, name, NULL, this.#secretAt, WORDS_OF.X25519.share);
    this.#scratch.fill(0, SECRET_AT);
    if (key === NULL) throw this.#failed("takes no private key of X25519");
    return this.#pairOf("X25519", key);
  }

  #pairOf(name: ExchangeName, key: bigint): EvpPair {
    const pair = new EvpPair(this, name, key, this.#publicKey(name, key));
    this.#forgotten.register(pair, pair.kept, pair.kept);
    return pair;
  }

  #publicKey(name: ExchangeName, key: bigint): Buffer {
    this.#setLength(LENGTH_AT, WORDS_OF[name].share);
    const isThere = this.#calls.EVP_PKEY_get_raw_public_key(key, this.#outAt, this.#lengthAt) === 1;
    if (isThere) return this.#copy(OUT_AT, SIZES[name].share);
    this.#calls.EVP_PKEY_free(key);
    throw this.#failed(`has no public key of ${name}`);
  }

  free(kept: Kept): void {
    if (kept.context !== NULL) this.#calls.EVP_PKEY_CTX_free(kept.context);
    if (kept.key !== NULL) this.#calls.EVP_PKEY_free(kept.key);
    kept.key = kept.context = NULL;
    this.#forgotten.unregister(kept);
  }

  /** The secret of a pair and the peer's half; null: that cannot be used. */
  agree(name: ExchangeName, kept: Kept, peer: Uint8Array): Buffer | null {
    const { answer, secret } = SIZES[name];
    if (peer.length !== answer) return null;
    this.#scratch.set(peer, IN_AT);
    this.#setLength(LENGTH_AT, WORDS_OF[name].secret);
    return this.#taken(name === "X25519" ? this.#derive(kept) : this.#decapsulate(kept.key), secret);
  }

  /** Of our own key and the peer's public key, which is in the scratch. */
  #derive(kept: Kept): boolean {
    if (kept.context === NULL) kept.context = this.#newDerivation(kept.key);
    const { EVP_PKEY_derive_set_peer_ex, EVP_PKEY_derive } = this.#calls;
    return (
      kept.context !== NULL &&
      this.#setPeer() &&
      EVP_PKEY_derive_set_peer_ex(kept.context, this.#peer, NOT_VALIDATED) === 1 &&
      EVP_PKEY_derive(kept.context, this.#secretAt, this.#lengthAt) === 1
    );
  }

  /** The shared key becomes that of the peer in the scratch. */
  #setPeer(): boolean {
    const { EVP_PKEY_set1_encoded_public_key } = this.#calls;
    return EVP_PKEY_set1_encoded_public_key(this.#peer, this.#inAt, WORDS_OF.X25519.share) === 1;
  }

  #newDerivation(key: bigint): bigint {
    const context = this.#calls.EVP_PKEY_CTX_new(key, NULL);
    if (context === NULL || this.#calls.EVP_PKEY_derive_init(context) === 1) return context;
    this.#calls.EVP_PKEY_CTX_free(context);
    return NULL;
  }

  #decapsulate(key: bigint): boolean {
    const { EVP_PKEY_decapsulate_init, EVP_PKEY_decapsulate } = this.#calls;
    const context = this.#calls.EVP_PKEY_CTX_new(key, NULL);
    const size = WORDS_OF.X25519MLKEM768.answer;
    const isDone =
      context !== NULL &&
      EVP_PKEY_decapsulate_init(context, NULL) === 1 &&
      EVP_PKEY_decapsulate(context, this.#secretAt, this.#lengthAt, this.#inAt, size) === 1;
    this.#calls.EVP_PKEY_CTX_free(context);
    return isDone;
  }

  /** The accepting side of X25519MLKEM768; null: the peer's share cannot be used. */
  encapsulate(peer: Uint8Array): ExchangeAnswer | null {
    const { share, answer, secret } = SIZES.X25519MLKEM768;
    if (peer.length !== share) return null;
    this.#scratch.set(peer, IN_AT);
    this.#setLength(LENGTH_AT, WORDS_OF.X25519MLKEM768.answer);
    this.#setLength(SECOND_AT, WORDS_OF.X25519MLKEM768.secret);
    const key = this.#readPublic("X25519MLKEM768");
    const context = key === NULL ? NULL : this.#calls.EVP_PKEY_CTX_new(key, NULL);
    const { EVP_PKEY_encapsulate_init, EVP_PKEY_encapsulate } = this.#calls;
    const isDone =
      context !== NULL &&
      EVP_PKEY_encapsulate_init(context, NULL) === 1 &&
      EVP_PKEY_encapsulate(context, this.#outAt, this.#lengthAt, this.#secretAt, this.#secondAt) === 1;
    this.#calls.EVP_PKEY_CTX_free(context);
    this.#calls.EVP_PKEY_free(key);
    const made = this.#taken(isDone, secret);
    return made === null ? null : { share: this.#copy(OUT_AT, answer), secret: made };
  }

  /** The key whose bytes are in the scratch; 0: they are none. */
  #readPublic(name: ExchangeName): bigint {
    const { EVP_PKEY_new_raw_public_key_ex } = this.#calls;
    return EVP_PKEY_new_raw_public_key_ex(NULL, this.#nameAt(name), NULL, this.#inAt, WORDS_OF[name].share);
  }

  #taken(isDone: boolean, size: number): Buffer | null {
    const secret = isDone ? this.#copy(SECRET_AT, size) : null;
    this.#scratch.fill(0, SECRET_AT);
    if (!isDone) this.#calls.ERR_clear_error(); // or a later call of node:crypto would find it
    return secret;
  }

  #setLength(at: number, bytes: bigint): void {
    this.#numbers.setBigUint64(at, bytes, true);
  }

  #copy(at: number, size: number): Buffer {
    return Buffer.from(this.#scratch.subarray(at, at + size));
  }

  #failed(what: string): Error {
    this.#calls.ERR_clear_error();
    return new Error(`libcrypto ${what}`);
  }
}

/** The dialling side's half of one exchange. */
export class EvpPair implements Disposable {
  readonly publicKey: Buffer;
  readonly kept: Kept;
  readonly #exchanges: EvpExchanges;
  readonly #name: ExchangeName;

  constructor(exchanges: EvpExchanges, name: ExchangeName, key: bigint, publicKey: Buffer) {
    this.#exchanges = exchanges;
    this.#name = name;
    this.kept = { key, context: NULL };
    this.publicKey = publicKey;
  }

  /** The secret shared with the peer's half; null: that cannot be used. Throws behind disposal. */
  agree(peer: Uint8Array): Buffer | null {
    if (this.kept.key === NULL) throw new Error("the key was freed");
    return this.#exchanges.agree(this.#name, this.kept, peer);
  }

  /** Wipes and frees the private key; twice is harmless. */
  [Symbol.dispose](): void {
    this.#exchanges.free(this.kept);
  }
}
