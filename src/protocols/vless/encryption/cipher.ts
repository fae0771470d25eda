/** Keys, masks and sealed pieces of VLESS Encryption. */
import { createCipheriv, type Cipheriv } from "node:crypto";
import { blake3 } from "@noble/hashes/blake3.js";
import { ProtocolError } from "#core/errors.ts";
import type { KeptAead } from "#platform/aead.ts";
import { openAead, TAG_BYTES } from "#protocols/crypto/aead.ts";

export const IV_BYTES = 16;
export const HASH_BYTES = 32;
/** A sealed length: u16 and its tag. */
export const SEALED_LENGTH_BYTES = 2 + TAG_BYTES;

/** A client takes AES where the machine has it; the server finds out by the first sealed piece. */
export type CipherName = "aes-256-gcm" | "chacha20-poly1305";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const LAST_NONCE = Buffer.alloc(NONCE_BYTES, 0xff);
const MASK_CONTEXT = Buffer.from("VLESS");

/** BLAKE3's derive_key with raw bytes as the context. */
function deriveKey(context: Uint8Array, key: Uint8Array): Uint8Array {
  return blake3(key, { context: Uint8Array.from(context), dkLen: KEY_BYTES });
}

export function hashOf(bytes: Uint8Array): Buffer {
  return Buffer.from(blake3(bytes));
}

/** A running key stream that hides public keys and record headers: `update` masks what is plain and unmasks what is masked. */
export function openMask(key: Uint8Array, iv: Uint8Array): Cipheriv {
  return createCipheriv("aes-256-ctr", deriveKey(MASK_CONTEXT, key), iv);
}

/** One key in one direction. The nonce counts messages, big endian, and is one before the first. The caller disposes of it. */
export class CountedAead implements Disposable {
  readonly #aead: KeptAead;
  readonly #nonce = Buffer.alloc(NONCE_BYTES);

  constructor(name: CipherName, context: Uint8Array, key: Uint8Array) {
    this.#aead = openAead(name, deriveKey(context, key));
  }

  seal(plain: Uint8Array, aad?: Uint8Array): Buffer {
    const out = Buffer.allocUnsafe(plain.length + TAG_BYTES);
    this.sealInto(out, 0, plain, aad);
    return out;
  }

  /** Writes ciphertext and tag at `at`; answers with the offset behind the tag. */
  sealInto(out: Buffer, at: number, plain: Uint8Array, aad?: Uint8Array): number {
    this.#count();
    return this.#aead.sealInto(out, at, this.#nonce, plain, aad);
  }

  /** With the nonce that no counter reaches. */
  sealLast(plain: Uint8Array): Buffer {
    const out = Buffer.allocUnsafe(plain.length + TAG_BYTES);
    this.#aead.sealInto(out, 0, LAST_NONCE, plain);
    return out;
  }

  /** Throws `ProtocolError` where the tag is wrong. */
  open(sealed: Uint8Array, aad?: Uint8Array): Buffer {
    this.#count();
    return this.#openWith(this.#nonce, sealed, aad);
  }

  openLast(sealed: Uint8Array): Buffer {
    return this.#openWith(LAST_NONCE, sealed);
  }

  #openWith(nonce: Uint8Array, sealed: Uint8Array, aad?: Uint8Array): Buffer {
    if (sealed.length < TAG_BYTES) throw new ProtocolError("VLESS Encryption: a sealed piece is too short");
    const out = Buffer.allocUnsafe(sealed.length - TAG_BYTES);
    if (this.#aead.openInto(out, 0, nonce, sealed, aad) < 0)
      throw new ProtocolError("VLESS Encryption: a sealed piece does not open with this key");
    return out;
  }

  /** A worker can go on with it. */
  get canBeGiven(): boolean {
    return this.#aead.giveAway !== undefined;
  }

  /** The library's context of one direction and the messages so far, for another owner; null: there is none. It is closed then. */
  giveAway(direction: "sealing" | "opening"): { readonly context: bigint; readonly count: number } | null {
    const context = this.#aead.giveAway?.(direction);
    return context === undefined ? null : { context, count: this.#nonce.readUIntBE(NONCE_BYTES - 6, 6) };
  }

  #count(): void {
    for (let at = NONCE_BYTES - 1; at >= 0; at--) {
      const next = ((this.#nonce[at] ?? 0) + 1) & 0xff;
      this.#nonce[at] = next;
      if (next !== 0) return;
    }
  }

  [Symbol.dispose](): void {
    this.#aead[Symbol.dispose]();
  }
}

export function encodeLength(length: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(length);
  return bytes;
}
