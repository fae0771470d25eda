/**
 * Key exchanges by the EVP interface of the libcrypto inside the Node binary (EVP_PKEY_generate(3), EVP_PKEY_derive(3),
 * EVP_PKEY_decapsulate(3)). One call of the library makes both halves of X25519MLKEM768; `node:crypto` needs six objects and
 * two exports in DER for it.
 */
import type * as Ffi from "node:ffi";
import { WORDS } from "./machine-words.ts";

const SIGNATURES = {
  EVP_PKEY_CTX_new_from_name: { arguments: WORDS[3], return: "pointer" },
  EVP_PKEY_CTX_new: { arguments: WORDS[2], return: "pointer" },
  EVP_PKEY_CTX_free: { arguments: ["pointer"], return: "void" },
  EVP_PKEY_keygen_init: { arguments: ["pointer"], return: "i32" },
  EVP_PKEY_generate: { arguments: WORDS[2], return: "i32" },
  EVP_PKEY_free: { arguments: ["pointer"], return: "void" },
  EVP_PKEY_get_raw_public_key: { arguments: WORDS[3], return: "i32" },
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
}

/** Of one thread. */
export class EvpExchanges {
  readonly #library;
  readonly #calls;
  readonly #scratch: Buffer;
  readonly #numbers: DataView;
  readonly #at: bigint;
  /** Names that end with a zero, which the library is given; kept with their addresses. */
  readonly #names = new Map<ExchangeName, { readonly text: Buffer; readonly at: bigint }>();
  /** Contexts from which keys are generated, one for each exchange, for as long as the thread lives. */
  readonly #generators = new Map<ExchangeName, bigint>();
  /** Frees keys whose owner was collected without closing them. */
  readonly #forgotten = new FinalizationRegistry<Kept>((kept) => this.free(kept));

  /** Null where this runtime has no FFI, or its libcrypto does not know these exchanges. */
  static open(): EvpExchanges | null {
    const ffi = process.platform === "linux" ? process.getBuiltinModule("node:ffi") : undefined;
    if (ffi === undefined) return null;
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
    for (const name of Object.keys(SIZES) as ExchangeName[]) {
      const text = Buffer.from(`${name}\0`);
      this.#names.set(name, { text, at: ffi.getRawPointer(text) });
      this.#generators.set(name, this.#generator(name));
    }
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
    const key = EVP_PKEY_new_raw_private_key_ex(NULL, name, NULL, this.#of(SECRET_AT), BigInt(size));
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
    const size = SIZES[name].share;
    this.#setLength(LENGTH_AT, size);
    const isThere = this.#calls.EVP_PKEY_get_raw_public_key(key, this.#of(OUT_AT), this.#of(LENGTH_AT)) === 1;
    if (isThere) return this.#copy(OUT_AT, size);
    this.#calls.EVP_PKEY_free(key);
    throw this.#failed(`has no public key of ${name}`);
  }

  free(kept: Kept): void {
    if (kept.key !== NULL) this.#calls.EVP_PKEY_free(kept.key);
    kept.key = NULL;
    this.#forgotten.unregister(kept);
  }

  /** The secret of a pair and the peer's half; null: that cannot be used. */
  agree(name: ExchangeName, key: bigint, peer: Uint8Array): Buffer | null {
    const { answer, secret } = SIZES[name];
    if (peer.length !== answer) return null;
    const context = this.#calls.EVP_PKEY_CTX_new(key, NULL);
    this.#scratch.set(peer, IN_AT);
    this.#setLength(LENGTH_AT, secret);
    const isDone = name === "X25519" ? this.#derive(context) : this.#decapsulate(context, answer);
    this.#calls.EVP_PKEY_CTX_free(context);
    return this.#taken(isDone, secret);
  }

  /** Of a context of our own key and the peer's public key, which is in the scratch. */
  #derive(context: bigint): boolean {
    const peer = this.#readPublic("X25519");
    const isDone =
      context !== NULL &&
      peer !== NULL &&
      this.#calls.EVP_PKEY_derive_init(context) === 1 &&
      this.#calls.EVP_PKEY_derive_set_peer_ex(context, peer, NOT_VALIDATED) === 1 &&
      this.#calls.EVP_PKEY_derive(context, this.#of(SECRET_AT), this.#of(LENGTH_AT)) === 1;
    this.#calls.EVP_PKEY_free(peer);
    return isDone;
  }

  #decapsulate(context: bigint, size: number): boolean {
    const { EVP_PKEY_decapsulate_init, EVP_PKEY_decapsulate } = this.#calls;
    const [secret, length, from] = [this.#of(SECRET_AT), this.#of(LENGTH_AT), this.#of(IN_AT)];
    if (context === NULL || EVP_PKEY_decapsulate_init(context, NULL) !== 1) return false;
    return EVP_PKEY_decapsulate(context, secret, length, from, BigInt(size)) === 1;
  }

  /** The accepting side of X25519MLKEM768; null: the peer's share cannot be used. */
  encapsulate(peer: Uint8Array): ExchangeAnswer | null {
    const { share, answer, secret } = SIZES.X25519MLKEM768;
    if (peer.length !== share) return null;
    this.#scratch.set(peer, IN_AT);
    this.#setLength(LENGTH_AT, answer);
    this.#setLength(SECOND_AT, secret);
    const key = this.#readPublic("X25519MLKEM768");
    const context = key === NULL ? NULL : this.#calls.EVP_PKEY_CTX_new(key, NULL);
    const { EVP_PKEY_encapsulate_init, EVP_PKEY_encapsulate } = this.#calls;
    const [out, outLength] = [this.#of(OUT_AT), this.#of(LENGTH_AT)];
    const isDone =
      context !== NULL &&
      EVP_PKEY_encapsulate_init(context, NULL) === 1 &&
      EVP_PKEY_encapsulate(context, out, outLength, this.#of(SECRET_AT), this.#of(SECOND_AT)) === 1;
    this.#calls.EVP_PKEY_CTX_free(context);
    this.#calls.EVP_PKEY_free(key);
    const made = this.#taken(isDone, secret);
    return made === null ? null : { share: this.#copy(OUT_AT, answer), secret: made };
  }

  /** The key whose bytes are in the scratch; 0: they are none. */
  #readPublic(name: ExchangeName): bigint {
    const { EVP_PKEY_new_raw_public_key_ex } = this.#calls;
    const size = BigInt(SIZES[name].share);
    return EVP_PKEY_new_raw_public_key_ex(NULL, this.#nameAt(name), NULL, this.#of(IN_AT), size);
  }

  #taken(isDone: boolean, size: number): Buffer | null {
    const secret = isDone ? this.#copy(SECRET_AT, size) : null;
    this.#scratch.fill(0, SECRET_AT);
    if (!isDone) this.#calls.ERR_clear_error(); // or a later call of node:crypto would find it
    return secret;
  }

  #of(offset: number): bigint {
    return this.#at + BigInt(offset);
  }

  #setLength(at: number, bytes: number): void {
    this.#numbers.setBigUint64(at, BigInt(bytes), true);
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
    this.kept = { key };
    this.publicKey = publicKey;
  }

  /** The secret shared with the peer's half; null: that cannot be used. Throws behind disposal. */
  agree(peer: Uint8Array): Buffer | null {
    if (this.kept.key === NULL) throw new Error("the key was freed");
    return this.#exchanges.agree(this.#name, this.kept.key, peer);
  }

  /** Wipes and frees the private key; twice is harmless. */
  [Symbol.dispose](): void {
    this.#exchanges.free(this.kept);
  }
}
