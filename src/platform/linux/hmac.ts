/**
 * Digests and HMAC by the libcrypto inside the Node binary (EVP_DigestInit(3), RFC 2104). `node:crypto` makes a key, an object and
 * a context for each; HMAC(3) of the library takes seven arguments, which the runtime passes on the slow way, so that two
 * digests cost less.
 */
import type * as Ffi from "node:ffi";
import { byteAt } from "#lib/at.ts";
import { WORDS } from "./machine-words.ts";

const SIGNATURES = {
  EVP_MD_fetch: { arguments: WORDS[3], return: "pointer" },
  EVP_Digest: { arguments: WORDS[6], return: "i32" },
} as const;

const HASHES = {
  sha256: { name: "SHA2-256\0", bytes: 32, blockBytes: 64 },
  sha384: { name: "SHA2-384\0", bytes: 48, blockBytes: 128 },
  sha512: { name: "SHA2-512\0", bytes: 64, blockBytes: 128 },
} as const;
export type HmacHash = keyof typeof HASHES;

const MAX_BLOCK_BYTES = 128;
const MAX_DIGEST_BYTES = 64;
// Scratch: OUT(64) OUTER_KEY(128) INNER_DIGEST(64) INNER_KEY(128) DATA(16384); keys end where what they are in front of begins
const INNER_DIGEST_AT = MAX_DIGEST_BYTES + MAX_BLOCK_BYTES;
const DATA_AT = INNER_DIGEST_AT + MAX_DIGEST_BYTES + MAX_BLOCK_BYTES;
const MAX_DATA_BYTES = 16 * 1024;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
const NULL = 0n;

/** Of one thread. */
export class Hmac {
  readonly #library;
  readonly #functions;
  readonly #scratch = Buffer.from(new ArrayBuffer(DATA_AT + MAX_DATA_BYTES));
  readonly #at: bigint;
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
    this.#at = ffi.getRawPointer(this.#scratch);
    this.#digests = {
      sha256: this.#fetch("sha256"),
      sha384: this.#fetch("sha384"),
      sha512: this.#fetch("sha512"),
    };
  }

  #fetch(hash: HmacHash): bigint {
    this.#scratch.write(HASHES[hash].name, DATA_AT, "latin1");
    const digest = this.#functions.EVP_MD_fetch(NULL, this.#at + BigInt(DATA_AT), NULL);
    if (digest === NULL) throw new Error(`libcrypto does not know ${hash}`);
    return digest;
  }

  /** Of all parts, one behind the other. Null: they are longer than what this is made for. */
  digest(hash: HmacHash, parts: readonly Uint8Array[]): Buffer | null {
    const end = this.#place(parts);
    return end < 0 ? null : this.#taken(hash, DATA_AT, end);
  }

  /** Null: key or data are longer than what this is made for. The key is wiped. */
  of(hash: HmacHash, key: Uint8Array, data: readonly Uint8Array[]): Buffer | null {
    const { bytes, blockBytes } = HASHES[hash];
    const end = this.#place(data);
    if (end < 0 || key.length > blockBytes) return null;
    const [innerAt, outerAt] = [DATA_AT - blockBytes, INNER_DIGEST_AT - blockBytes];
    for (let index = 0; index < blockBytes; index++) {
      const byte = index < key.length ? byteAt(key, index) : 0;
      this.#scratch[innerAt + index] = byte ^ INNER_PAD;
      this.#scratch[outerAt + index] = byte ^ OUTER_PAD;
    }
    this.#digest(hash, innerAt, end, INNER_DIGEST_AT);
    const made = this.#taken(hash, outerAt, INNER_DIGEST_AT + bytes);
    this.#scratch.fill(0, outerAt, DATA_AT);
    return made;
  }

  /** Where the data ends; -1: there is no room. */
  #place(parts: readonly Uint8Array[]): number {
    let end = DATA_AT;
    for (const part of parts) {
      if (end + part.length > this.#scratch.length) return -1;
      this.#scratch.set(part, end);
      end += part.length;
    }
    return end;
  }

  #taken(hash: HmacHash, from: number, end: number): Buffer {
    this.#digest(hash, from, end, 0);
    return Buffer.from(this.#scratch.subarray(0, HASHES[hash].bytes));
  }

  #digest(hash: HmacHash, from: number, end: number, to: number): void {
    const { EVP_Digest } = this.#functions;
    const [data, out] = [this.#at + BigInt(from), this.#at + BigInt(to)];
    if (EVP_Digest(data, BigInt(end - from), out, NULL, this.#digests[hash], NULL) !== 1)
      throw new Error(`libcrypto computes no ${hash}`);
  }
}
