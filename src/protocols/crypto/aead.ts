/** AEAD ciphers under one face. Nonces are the caller's: never twice the same under one key. */
import { createCipheriv, createDecipheriv, type CipherGCMTypes } from "node:crypto";
import { keepAead, type KeptAead, type SingleMessage, singleMessages } from "#platform/aead.ts";
import { hchacha20 } from "./hchacha20.ts";
import { byteAt } from "#lib/at.ts";

export const AEAD_NAMES = [
  "aes-128-gcm",
  "aes-192-gcm",
  "aes-256-gcm",
  "chacha20-poly1305",
  "xchacha20-poly1305",
] as const;
export type AeadName = (typeof AEAD_NAMES)[number];
type PlainNonceName = Exclude<AeadName, "xchacha20-poly1305">;

export const TAG_BYTES = 16;
const OPTIONS = { authTagLength: TAG_BYTES } as const;

export interface Aead {
  readonly nonceBytes: 12 | 24;
  /** Writes ciphertext and tag into `out` at `at`; answers with the offset behind the tag. */
  sealInto(out: Buffer, at: number, nonce: Uint8Array, plain: Uint8Array, aad?: Uint8Array): number;
  /** The plain bytes, or null where the tag is wrong. `sealed` ends with the tag. */
  open(nonce: Uint8Array, sealed: Buffer, aad?: Uint8Array): Buffer | null;
}

/** `key` must have the length that the cipher wants; node:crypto throws otherwise. */
export function createAead(name: AeadName, key: Uint8Array): Aead {
  return name === "xchacha20-poly1305" ? extendedNonce(key) : plainNonce(name as CipherGCMTypes, key);
}

/**
 * For many messages under one key: libcrypto's own contexts where the runtime lends them, `node:crypto` elsewhere. The
 * caller disposes of it; one that is forgotten is freed by the garbage collector.
 */
export function openAead(name: AeadName, key: Uint8Array): KeptAead {
  const kept = name === "xchacha20-poly1305" ? null : keepAead(name, key);
  return kept ?? oneByOne(createAead(name, key));
}

/** Each message by itself, behind the face of those that keep something. */
export function oneByOne({ nonceBytes, sealInto, open }: Aead): KeptAead {
  return {
    nonceBytes,
    sealInto: (out, at, nonce, plain, aad) => sealInto(out as Buffer, at, nonce, plain, aad),
    openInto(out, at, nonce, sealed, aad) {
      const plain = open(nonce, sealed as Buffer, aad);
      if (plain === null) return -1;
      out.set(plain, at);
      return at + plain.length;
    },
    [Symbol.dispose]() {}, // nothing was kept
  };
}

export function seal(aead: Aead, nonce: Uint8Array, plain: Uint8Array, aad?: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(plain.length + TAG_BYTES);
  aead.sealInto(out, 0, nonce, plain, aad);
  return out;
}

/** Writes ciphertext and tag of a message that has its key for itself into `out`; answers with the offset behind the tag. */
export function sealSingle(
  name: PlainNonceName,
  message: SingleMessage,
  plain: Uint8Array,
  out: Buffer,
  at: number,
): number {
  const native = singleMessages();
  if (native !== null) return native.sealInto(name, message, plain, out, at);
  return createAead(name, message.key).sealInto(out, at, message.nonce, plain, message.aad);
}

/** The plain bytes of a message that has its key for itself, or null where the tag is wrong. */
export function openSingle(name: PlainNonceName, message: SingleMessage, sealed: Buffer): Buffer | null {
  const native = singleMessages();
  if (native === null) return createAead(name, message.key).open(message.nonce, sealed, message.aad);
  if (sealed.length < TAG_BYTES) return null;
  const plain = Buffer.allocUnsafe(sealed.length - TAG_BYTES);
  return native.openInto(name, message, sealed, plain) < 0 ? null : plain;
}

function plainNonce(name: CipherGCMTypes, key: Uint8Array): Aead {
  return {
    nonceBytes: 12,
    sealInto(out, at, nonce, plain, aad) {
      const cipher = createCipheriv(name, key, nonce, OPTIONS);
      if (aad !== undefined) cipher.setAAD(aad);
      const body = cipher.update(plain);
      cipher.final();
      out.set(body, at);
      out.set(cipher.getAuthTag(), at + body.length);
      return at + body.length + TAG_BYTES;
    },
    open(nonce, sealed, aad) {
      const end = sealed.length - TAG_BYTES;
      if (end < 0) return null;
      const decipher = createDecipheriv(name, key, nonce, OPTIONS);
      decipher.setAuthTag(sealed.subarray(end));
      if (aad !== undefined) decipher.setAAD(aad);
      const plain = decipher.update(sealed.subarray(0, end));
      try {
        decipher.final();
      } catch {
        return null; // the one thing that final() checks is the tag
      }
      return plain;
    },
  };
}

/** XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha §2.3): a subkey from the first 16 nonce bytes, the other 8 behind 4 zeros. */
function extendedNonce(key: Uint8Array): Aead {
  const inner = Buffer.alloc(12);
  const under = (nonce: Uint8Array): Aead => {
    inner.set(nonce.subarray(16, 24), 4);
    return plainNonce("chacha20-poly1305" as CipherGCMTypes, hchacha20(key, nonce.subarray(0, 16)));
  };
  return {
    nonceBytes: 24,
    sealInto: (out, at, nonce, plain, aad) => under(nonce).sealInto(out, at, inner, plain, aad),
    open: (nonce, sealed, aad) => under(nonce).open(inner, sealed, aad),
  };
}

/** Adds one to a little-endian counter that fills the nonce. It cannot wrap within the life of a connection. */
export function incrementNonce(nonce: Uint8Array): void {
  for (let at = 0; at < nonce.length; at++) {
    const next = (byteAt(nonce, at) + 1) & 0xff;
    nonce[at] = next;
    if (next !== 0) return;
  }
}
