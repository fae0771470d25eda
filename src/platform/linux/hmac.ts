/**
 * Digests and HMAC by the libcrypto inside the Node binary (SHA256_Init(3), RFC 2104). `node:crypto` makes a key, an object and a
 * context for each. So does EVP, whose functions take more arguments than compiled code passes by itself; these write to memory
 * of ours and take three. OpenSSL calls them deprecated: a libcrypto without them is one without FFI to us.
 */
import type * as Ffi from "node:ffi";
import { byteAt } from "#lib/at.ts";
import { NumberWords, WORDS } from "./machine-words.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const BEGIN = { arguments: ["pointer"], return: "i32" } as const;
const UPDATE = { arguments: WORDS[3], return: "i32" } as const;
const FINISH = { arguments: WORDS[2], return: "i32" } as const;
const SIGNATURES = {
  SHA256_Init: BEGIN,
  SHA256_Update: UPDATE,
  SHA256_Final: FINISH,
  SHA384_Init: BEGIN,
  SHA512_Init: BEGIN,
  SHA512_Update: UPDATE,
  SHA512_Final: FINISH,
} as const;

const HASHES = {
  sha256: { name: "SHA256", bytes: 32, blockBytes: 64 },
  sha384: { name: "SHA384", bytes: 48, blockBytes: 128 },
  sha512: { name: "SHA512", bytes: 64, blockBytes: 128 },
} as const;
export type HmacHash = keyof typeof HASHES;

const MAX_BLOCK_BYTES = 128;
const MAX_DIGEST_BYTES = 64;
/** SHA256_CTX has 112 bytes, SHA512_CTX 216. */
const CONTEXT_BYTES = 256;
// Scratch: CONTEXT(256) OUT(64) OUTER_KEY(128) INNER_DIGEST(64) INNER_KEY(128) DATA(16384); keys end where what they are in front of begins
const OUT_AT = CONTEXT_BYTES;
const INNER_DIGEST_AT = OUT_AT + MAX_DIGEST_BYTES + MAX_BLOCK_BYTES;
const DATA_AT = INNER_DIGEST_AT + MAX_DIGEST_BYTES + MAX_BLOCK_BYTES;
const MAX_DATA_BYTES = 16 * 1024;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
/** Most messages are shorter. */
const KEPT_SIZES = 2048;

/** One hash: where in the scratch it works, and the addresses of these places. */
interface Hash {
  readonly bytes: number;
  readonly blockBytes: number;
  /** A context of which nothing was hashed yet. */
  readonly begun: Buffer;
  readonly innerAt: number;
  readonly inner: bigint;
  readonly outerAt: number;
  readonly outer: bigint;
  readonly outerSize: bigint;
}

/** Of one thread. */
export class Hmac {
  readonly #functions;
  readonly #scratch = Buffer.from(new ArrayBuffer(DATA_AT + MAX_DATA_BYTES));
  readonly #contextBytes = this.#scratch.subarray(0, CONTEXT_BYTES);
  readonly #sizes = new NumberWords(KEPT_SIZES);
  readonly #context: bigint;
  readonly #out: bigint;
  readonly #innerDigest: bigint;
  readonly #data: bigint;
  readonly #hashes: Readonly<Record<HmacHash, Hash>>;

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): Hmac | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new Hmac(ffi);
    } catch {
      return null; // a runtime with another libcrypto, or linked without names: node:crypto is there
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#functions = ffi.dlopen(null, SIGNATURES).functions;
    this.#context = ffi.getRawPointer(this.#scratch);
    this.#out = this.#context + BigInt(OUT_AT);
    this.#innerDigest = this.#context + BigInt(INNER_DIGEST_AT);
    this.#data = this.#context + BigInt(DATA_AT);
    const hash = (one: HmacHash): Hash => {
      const { name, bytes, blockBytes } = HASHES[one];
      this.#functions[`${name}_Init`](this.#context);
      const [innerAt, outerAt] = [DATA_AT - blockBytes, INNER_DIGEST_AT - blockBytes];
      return {
        bytes,
        blockBytes,
        begun: Buffer.from(this.#contextBytes),
        innerAt,
        inner: this.#context + BigInt(innerAt),
        outerAt,
        outer: this.#context + BigInt(outerAt),
        outerSize: BigInt(blockBytes + bytes),
      };
    };
    this.#hashes = { sha256: hash("sha256"), sha384: hash("sha384"), sha512: hash("sha512") };
  }

  /** Of all parts, one behind the other. Null: they are longer than what this is made for. */
  digest(name: HmacHash, parts: readonly Uint8Array[]): Buffer | null {
    const hash = this.#hashes[name];
    const size = this.#place(parts);
    return size < 0 ? null : this.#taken(hash, this.#data, this.#sizes.of(size));
  }

  /** Null: key or data are longer than what this is made for. The key is wiped. */
  of(name: HmacHash, key: Uint8Array, data: readonly Uint8Array[]): Buffer | null {
    const hash = this.#hashes[name];
    const { blockBytes, innerAt, outerAt } = hash;
    const size = this.#place(data);
    if (size < 0 || key.length > blockBytes) return null;
    this.#scratch.fill(INNER_PAD, innerAt + key.length, innerAt + blockBytes);
    this.#scratch.fill(OUTER_PAD, outerAt + key.length, outerAt + blockBytes);
    for (let index = 0; index < key.length; index++) {
      const byte = byteAt(key, index);
      this.#scratch[innerAt + index] = byte ^ INNER_PAD;
      this.#scratch[outerAt + index] = byte ^ OUTER_PAD;
    }
    this.#digest(hash, hash.inner, this.#sizes.of(blockBytes + size), this.#innerDigest);
    const made = this.#taken(hash, hash.outer, hash.outerSize);
    this.#scratch.fill(0, outerAt, DATA_AT);
    this.#contextBytes.fill(0);
    return made;
  }

  /** What a digest that goes on begins with, for `add` and `soFar`: a context of the library, which no memory is behind. */
  begin(name: HmacHash): Buffer {
    return Buffer.from(this.#hashes[name].begun);
  }

  add(name: HmacHash, context: Uint8Array, data: Uint8Array): void {
    this.#continue(name, context, data);
    context.set(this.#contextBytes);
  }

  /** Of all that was added, and of `further` as if it had been; the context stays as it is. */
  soFar(name: HmacHash, context: Uint8Array, further: Uint8Array): Buffer {
    const hash = this.#continue(name, context, further);
    this.#finish(hash, this.#out);
    return this.#copy(hash);
  }

  #continue(name: HmacHash, context: Uint8Array, data: Uint8Array): Hash {
    const hash = this.#hashes[name];
    this.#contextBytes.set(context);
    for (let from = 0; from < data.length; from += MAX_DATA_BYTES) {
      const size = this.#place([data.subarray(from, from + MAX_DATA_BYTES)]);
      this.#update(hash, this.#data, this.#sizes.of(size));
    }
    return hash;
  }

  /** How many bytes the data has; -1: there is no room. */
  #place(parts: readonly Uint8Array[]): number {
    let end = DATA_AT;
    for (const part of parts) {
      if (end + part.length > this.#scratch.length) return -1;
      this.#scratch.set(part, end);
      end += part.length;
    }
    return end - DATA_AT;
  }

  #taken(hash: Hash, data: bigint, size: bigint): Buffer {
    this.#digest(hash, data, size, this.#out);
    return this.#copy(hash);
  }

  #copy({ bytes }: Hash): Buffer {
    return Buffer.from(this.#scratch.subarray(OUT_AT, OUT_AT + bytes));
  }

  #digest(hash: Hash, data: bigint, size: bigint, to: bigint): void {
    this.#contextBytes.set(hash.begun);
    this.#update(hash, data, size);
    this.#finish(hash, to);
  }

  // Compiled code calls a function as it is where it can be no other one. That of SHA-512 is that of SHA-384, too.

  #update({ blockBytes }: Hash, data: bigint, size: bigint): void {
    const { SHA256_Update, SHA512_Update } = this.#functions;
    if (blockBytes === MAX_BLOCK_BYTES) SHA512_Update(this.#context, data, size);
    else SHA256_Update(this.#context, data, size);
  }

  #finish({ blockBytes }: Hash, to: bigint): void {
    const { SHA256_Final, SHA512_Final } = this.#functions;
    if (blockBytes === MAX_BLOCK_BYTES) SHA512_Final(to, this.#context);
    else SHA256_Final(to, this.#context);
  }
}
