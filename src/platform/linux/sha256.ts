/**
 * The compression function of SHA-256 (FIPS 180-4 §6.2.2) by the libcrypto inside the Node binary: 50 ns a block, where a
 * digest by EVP takes ten times that before it has read a byte.
 */
import type * as Ffi from "node:ffi";
import { WORDS } from "./machine-words.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = { SHA256_Transform: { arguments: WORDS[2], return: "void" } } as const;

// Memory: SHA256_CTX, of which the function uses the state in front (eight words of the machine's order); BLOCK(64)
const CONTEXT_BYTES = 128;
const BLOCK_BYTES = 64;
const STATE_WORDS = 8;

/** Of one thread. */
export class Sha256 {
  readonly state: Uint32Array;
  readonly block: Uint8Array;
  readonly #transform;
  readonly #stateAt: bigint;
  readonly #blockAt: bigint;

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): Sha256 | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new Sha256(ffi);
    } catch {
      return null; // a runtime linked without the name
    }
  }

  constructor(ffi: typeof Ffi) {
    const memory = new ArrayBuffer(CONTEXT_BYTES + BLOCK_BYTES);
    this.state = new Uint32Array(memory, 0, STATE_WORDS);
    this.block = new Uint8Array(memory, CONTEXT_BYTES, BLOCK_BYTES);
    this.#transform = ffi.dlopen(null, SIGNATURES).functions.SHA256_Transform;
    this.#stateAt = ffi.getRawPointer(this.state);
    this.#blockAt = this.#stateAt + BigInt(CONTEXT_BYTES);
  }

  compress(): void {
    this.#transform(this.#stateAt, this.#blockAt);
  }
}
