/** What WireGuard is made of: X25519, ChaCha20-Poly1305 and BLAKE2s (https://www.wireguard.com/papers/wireguard.pdf, 5.4). */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
} from "node:crypto";
import { blake2s } from "@noble/hashes/blake2.js";
import { MAC_BYTES, TAG_BYTES } from "./sizes.ts";

const CIPHER = "chacha20-poly1305";
const OPTIONS = { authTagLength: TAG_BYTES } as const;
/** Each key of a handshake seals one message. */
const FIRST_NONCE = new Uint8Array(12);

export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: Buffer;
}

export function generatePair(): KeyPair {
  return pairOf(generateKeyPairSync("x25519").privateKey);
}

/** `raw`: 32 bytes. */
export function readPair(raw: Uint8Array): KeyPair {
  return pairOf(
    createPrivateKey({ key: Buffer.from(raw), format: "raw-private", asymmetricKeyType: "x25519" }),
  );
}

function pairOf(privateKey: KeyObject): KeyPair {
  return { privateKey, publicKey: createPublicKey(privateKey).export({ format: "raw-public" }) };
}

/** Null where the public key is of small order: there is no secret. */
export function agree({ privateKey }: KeyPair, publicKey: Uint8Array): Buffer | null {
  const key = Buffer.from(publicKey);
  try {
    return diffieHellman({
      privateKey,
      publicKey: createPublicKey({ key, format: "raw-public", asymmetricKeyType: "x25519" }),
    });
  } catch {
    return null;
  }
}

export function hash(...parts: readonly (Uint8Array | string)[]): Buffer {
  const made = createHash("blake2s256");
  for (const part of parts) made.update(part);
  return made.digest();
}

/** 16 bytes. */
export function mac(key: Uint8Array, message: Uint8Array): Buffer {
  return Buffer.from(blake2s(message, { key, dkLen: MAC_BYTES }));
}

/** The first `count` keys that HKDF makes. */
export function derive(count: 2 | 3, key: Uint8Array, input: Uint8Array): readonly [Buffer, Buffer, Buffer] {
  const secret = hmac(key, input);
  const first = hmac(secret, Uint8Array.of(1));
  const second = hmac(secret, first, Uint8Array.of(2));
  return [first, second, count === 3 ? hmac(secret, second, Uint8Array.of(3)) : second];
}

function hmac(key: Uint8Array, ...parts: readonly Uint8Array[]): Buffer {
  const made = createHmac("blake2s256", key);
  for (const part of parts) made.update(part);
  return made.digest();
}

/** Ciphertext and tag. */
export function seal(key: Uint8Array, plain: Uint8Array, aad: Uint8Array): Buffer {
  const cipher = createCipheriv(CIPHER, key, FIRST_NONCE, OPTIONS);
  cipher.setAAD(aad, { plaintextLength: plain.length });
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Null where the tag is wrong. */
export function open(
  key: Uint8Array,
  sealed: Uint8Array,
  aad: Uint8Array,
  nonce: Uint8Array = FIRST_NONCE,
): Buffer | null {
  const end = sealed.length - TAG_BYTES;
  if (end < 0) return null;
  const decipher = createDecipheriv(CIPHER, key, nonce, OPTIONS);
  decipher.setAAD(aad, { plaintextLength: end });
  decipher.setAuthTag(sealed.subarray(end));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, end)), decipher.final()]);
  } catch {
    return null;
  }
}
