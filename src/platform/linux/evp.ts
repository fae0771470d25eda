/**
 * AEAD by the EVP interface of the libcrypto inside the Node binary (OpenSSL 3, EVP_EncryptInit(3)). A call of
 * `node:crypto` makes an object, a context and a copy; here a context is kept for each key and direction and only gets the
 * next nonce. What a peer sends decides no size: the library writes as many bytes as it reads, and both are checked here.
 */
import type * as Ffi from "node:ffi";
import { MINUS_ONE, RecentWords, WORDS } from "./machine-words.ts";
import { byteAt } from "#lib/at.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  EVP_CIPHER_CTX_new: { arguments: [], return: "pointer" },
  EVP_CIPHER_CTX_free: { arguments: ["pointer"], return: "void" },
  EVP_CipherInit_ex: { arguments: WORDS[6], return: "i32" },
  EVP_CipherUpdate: { arguments: WORDS[5], return: "i32" },
  EVP_CipherFinal_ex: { arguments: WORDS[3], return: "i32" },
  EVP_CIPHER_CTX_ctrl: { arguments: WORDS[4], return: "i32" },
  EVP_CIPHER_fetch: { arguments: WORDS[3], return: "pointer" },
  ERR_clear_error: { arguments: [], return: "void" },
} as const;

export const TAG_BYTES = 16;
const TAG_SIZE = BigInt(TAG_BYTES);
const EVP_CTRL_AEAD_GET_TAG = 0x10n;
const EVP_CTRL_AEAD_SET_TAG = 0x11n;
const SEAL = 1;
const OPEN = 0;
/** The direction stays as it is. */
const UNCHANGED = MINUS_ONE;
const NULL = 0n;

const NONCE_BYTES = 12;
// Scratch: NONCE(12) UNUSED(4) LENGTH(4, what the library says it wrote) UNUSED(12) END(16, written by no AEAD)
const LENGTH_AT = 16;
const END_AT = 32;
const SCRATCH_BYTES = 48;
const NOTHING = new Uint8Array(0);

type Functions = ReturnType<typeof Ffi.dlopen<typeof SIGNATURES>>["functions"];
export type EvpName = "aes-128-gcm" | "aes-192-gcm" | "aes-256-gcm" | "chacha20-poly1305";
export const KEY_BYTES: Readonly<Record<EvpName, number>> = {
  "aes-128-gcm": 16,
  "aes-192-gcm": 24,
  "aes-256-gcm": 32,
  "chacha20-poly1305": 32,
};

/** Addresses of EVP_CIPHER_CTX; 0: there is none. Apart from their owner, so that they can be freed when it is gone. */
export interface Contexts {
  sealing: bigint;
  opening: bigint;
}

export class Evp {
  readonly #ffi: typeof Ffi;
  readonly #library;
  readonly #functions: Functions;
  readonly #scratch = new Uint8Array(new ArrayBuffer(SCRATCH_BYTES));
  readonly #counter = new DataView(this.#scratch.buffer);
  /** Memory whose addresses were given out, for as long as the thread lives. */
  readonly #pinned: Uint8Array[] = [];
  /** Addresses of EVP_CIPHER, looked up once; kept for as long as the thread lives. */
  readonly #ciphers = new Map<EvpName, bigint>();
  /** Where the library is to look while a call runs, and not longer: an address alone keeps no memory. */
  readonly #lent: [Uint8Array, Uint8Array] = [NOTHING, NOTHING];
  readonly #nonce: bigint;
  readonly #length: bigint;
  readonly #end: bigint;
  readonly #sizes = new RecentWords();
  /** Frees contexts whose owner was collected without closing them. */
  readonly #forgotten = new FinalizationRegistry<Contexts>((contexts) => this.free(contexts));

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): Evp | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new Evp(ffi);
    } catch {
      return null; // a runtime with another libcrypto, or linked without names: node:crypto is there
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#functions = this.#library.functions;
    const start = ffi.getRawPointer(this.#scratch);
    this.#nonce = start;
    this.#length = start + BigInt(LENGTH_AT);
    this.#end = start + BigInt(END_AT);
  }

  /** Throws where `key` has not the cipher's length: the library would read past its end. */
  keep(name: EvpName, key: Uint8Array): EvpAead {
    if (key.length !== KEY_BYTES[name]) throw new RangeError(`${name}: a key of ${key.length} bytes`);
    const aead = new EvpAead(this, name, key);
    this.#forgotten.register(aead, aead.contexts, aead.contexts);
    return aead;
  }

  /** For sealing (1) or opening (0). `key` has the cipher's length. */
  openContext(name: EvpName, key: Uint8Array, direction: number): bigint {
    const { EVP_CIPHER_CTX_new, EVP_CipherInit_ex } = this.#functions;
    const context = EVP_CIPHER_CTX_new();
    if (context === NULL) throw new Error("libcrypto has no memory for a cipher context");
    const cipher = this.#cipher(name);
    const isStarted =
      cipher !== NULL &&
      EVP_CipherInit_ex(context, cipher, NULL, this.#lend(1, key), NULL, BigInt(direction)) === 1;
    this.#lent[1] = NOTHING;
    if (isStarted) return context;
    this.#functions.EVP_CIPHER_CTX_free(context);
    this.#functions.ERR_clear_error();
    throw new Error(`libcrypto refuses ${name}`);
  }

  /** 0: the library does not know it. */
  #cipher(name: EvpName): bigint {
    const known = this.#ciphers.get(name);
    if (known !== undefined) return known;
    const fetched = this.#functions.EVP_CIPHER_fetch(NULL, this.#lend(1, Buffer.from(`${name}\0`)), NULL);
    this.#lent[1] = NOTHING;
    this.#ciphers.set(name, fetched);
    return fetched;
  }

  /** The library wipes the key. */
  free(contexts: Contexts): void {
    if (contexts.sealing !== NULL) this.#functions.EVP_CIPHER_CTX_free(contexts.sealing);
    if (contexts.opening !== NULL) this.#functions.EVP_CIPHER_CTX_free(contexts.opening);
    contexts.sealing = contexts.opening = NULL;
    this.#forgotten.unregister(contexts);
  }

  /** Of memory that stays where it is and is never given back. */
  pin(memory: Uint8Array): bigint {
    this.#pinned.push(memory);
    return this.#ffi.getRawPointer(memory);
  }

  seal(context: bigint, out: Uint8Array, at: number, plain: Uint8Array): number {
    const end = at + plain.length;
    if (!(at >= 0 && end + TAG_BYTES <= out.length)) throw new RangeError("no room for the sealed bytes");
    const to = this.#lend(0, out) + BigInt(at);
    this.sealAt(context, to, plain.length === 0 ? NULL : this.#lend(1, plain), plain.length);
    this.#lent[0] = this.#lent[1] = NOTHING;
    return end + TAG_BYTES;
  }

  unseal(context: bigint, out: Uint8Array, at: number, sealed: Uint8Array): number {
    const size = sealed.length - TAG_BYTES;
    if (size < 0) return -1;
    if (!(at >= 0 && at + size <= out.length)) throw new RangeError("no room for the opened bytes");
    const to = size === 0 ? NULL : this.#lend(0, out) + BigInt(at);
    const isAuthentic = this.openAt(context, to, this.#lend(1, sealed), size);
    this.#lent[0] = this.#lent[1] = NOTHING;
    if (isAuthentic) return at + size;
    out.fill(0, at, at + size); // plaintext that failed authentication must not stay readable
    return -1;
  }

  #lend(which: 0 | 1, memory: Uint8Array): bigint {
    this.#lent[which] = memory;
    return this.#ffi.getRawPointer(memory);
  }

  /** Gives the nonce, and what is authenticated only. */
  begin(context: bigint, nonce: Uint8Array, aad: Uint8Array | undefined): void {
    this.#setNonce(context, nonce);
    if (aad === undefined || aad.length === 0) return;
    const isTaken = this.#update(context, NULL, this.#lend(1, aad), aad.length);
    this.#lent[1] = NOTHING;
    if (!isTaken) throw this.#broken();
  }

  /** The same, with what is authenticated only at an address. */
  beginAt(context: bigint, nonce: Uint8Array, aad: bigint, size: number): void {
    this.#setNonce(context, nonce);
    if (!this.#update(context, NULL, aad, size)) throw this.#broken();
  }

  #setNonce(context: bigint, nonce: Uint8Array): void {
    if (nonce.length !== NONCE_BYTES) throw new RangeError(`a nonce of ${nonce.length} bytes`);
    for (let index = 0; index < NONCE_BYTES; index++) this.#scratch[index] = byteAt(nonce, index);
    this.#takeNonce(context);
  }

  /** Another key for the same cipher and direction. `key` has the cipher's length. */
  changeKey(context: bigint, key: Uint8Array): void {
    const { EVP_CipherInit_ex } = this.#functions;
    const isTaken = EVP_CipherInit_ex(context, NULL, NULL, this.#lend(1, key), NULL, UNCHANGED) === 1;
    this.#lent[1] = NOTHING;
    if (!isTaken) throw this.#broken();
  }

  /** The nonce is this number in little endian. */
  beginCounted(context: bigint, count: number): void {
    this.#counter.setUint32(0, count % 2 ** 32, true);
    this.#counter.setUint32(4, Math.floor(count / 2 ** 32), true);
    this.#counter.setUint32(8, 0, true);
    this.#takeNonce(context);
  }

  #takeNonce(context: bigint): void {
    if (this.#functions.EVP_CipherInit_ex(context, NULL, NULL, NULL, this.#nonce, UNCHANGED) !== 1)
      throw this.#broken();
  }

  /** From address to address, which may not overlap; the tag goes behind the sealed bytes. */
  sealAt(context: bigint, to: bigint, from: bigint, size: number): void {
    if (!this.#pass(context, to, from, size)) throw this.#broken();
    const tag = to + this.#sizes.of(size);
    if (this.#functions.EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_SIZE, tag) !== 1)
      throw this.#broken();
  }

  /** Likewise, with the tag behind the `size` sealed bytes. False: it is wrong, and what was written is not authentic. */
  openAt(context: bigint, to: bigint, from: bigint, size: number): boolean {
    const tag = from + this.#sizes.of(size);
    if (this.#functions.EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG_SIZE, tag) !== 1)
      throw this.#broken();
    if (this.#pass(context, to, from, size)) return true;
    this.#functions.ERR_clear_error(); // or a later call of node:crypto would find it
    return false;
  }

  /** All bytes at once. False: the library refuses them, which for an opening context means the tag. */
  #pass(context: bigint, to: bigint, from: bigint, size: number): boolean {
    if (size > 0 && !this.#update(context, to, from, size)) return false;
    return this.#functions.EVP_CipherFinal_ex(context, this.#end, this.#length) === 1;
  }

  #update(context: bigint, to: bigint, from: bigint, size: number): boolean {
    return this.#functions.EVP_CipherUpdate(context, to, this.#length, from, this.#sizes.of(size)) === 1;
  }

  #broken(): Error {
    this.#functions.ERR_clear_error();
    return new Error("libcrypto refuses a call that it took before");
  }
}

class EvpAead implements Disposable {
  readonly nonceBytes = NONCE_BYTES;
  readonly contexts: Contexts = { sealing: NULL, opening: NULL };
  readonly #evp: Evp;
  readonly #name: EvpName;
  /** Null once disposed of. */
  #key: Uint8Array | null;

  constructor(evp: Evp, name: EvpName, key: Uint8Array) {
    this.#evp = evp;
    this.#name = name;
    this.#key = key;
  }

  sealInto(out: Uint8Array, at: number, nonce: Uint8Array, plain: Uint8Array, aad?: Uint8Array): number {
    if (this.contexts.sealing === NULL) this.contexts.sealing = this.#open(SEAL);
    this.#evp.begin(this.contexts.sealing, nonce, aad);
    return this.#evp.seal(this.contexts.sealing, out, at, plain);
  }

  openInto(out: Uint8Array, at: number, nonce: Uint8Array, sealed: Uint8Array, aad?: Uint8Array): number {
    if (this.contexts.opening === NULL) this.contexts.opening = this.#open(OPEN);
    this.#evp.begin(this.contexts.opening, nonce, aad);
    return this.#evp.unseal(this.contexts.opening, out, at, sealed);
  }

  #open(direction: number): bigint {
    if (this.#key === null) throw new Error("the cipher was closed");
    return this.#evp.openContext(this.#name, this.#key, direction);
  }

  /** The context of that direction is the caller's; the cipher is closed. */
  giveAway(direction: "sealing" | "opening"): bigint {
    const isUnused = this.contexts[direction] === NULL;
    const context = isUnused ? this.#open(direction === "sealing" ? SEAL : OPEN) : this.contexts[direction];
    this.contexts[direction] = NULL;
    this[Symbol.dispose]();
    return context;
  }

  [Symbol.dispose](): void {
    this.#key = null;
    this.#evp.free(this.contexts);
  }
}
