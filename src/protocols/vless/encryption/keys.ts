/** The long-lived keys of VLESS Encryption: X25519 or ML-KEM-768, distinguished by their length. */
import {
  createPrivateKey,
  createPublicKey,
  decapsulate,
  diffieHellman,
  encapsulate,
  generateKeyPairSync,
  type KeyObject,
} from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import { hashOf } from "./cipher.ts";

export const X25519_BYTES = 32;
export const MLKEM_PUBLIC_BYTES = 1184;
export const MLKEM_CIPHERTEXT_BYTES = 1088;
const MLKEM_SEED_BYTES = 64;

/** What a client holds of one hop. */
export interface HopPublicKey {
  /** As written in the setting; masks are made of it. */
  readonly raw: Buffer;
  readonly hash: Buffer;
  /** A fresh share for the hop, and the secret that only the hop can make of it. */
  share(): Shared;
}

export interface Shared {
  /** 32 bytes of X25519, or a ciphertext of 1,088 bytes. */
  readonly share: Buffer;
  readonly secret: Buffer;
}

/** What a server holds of one hop. */
export interface HopPrivateKey {
  readonly raw: Buffer;
  readonly hash: Buffer;
  readonly shareBytes: number;
  /** Throws `ProtocolError` where the share is none. */
  secretOf(share: Buffer): Buffer;
}

/** Null where the length fits no key. */
export function readHopPublicKey(raw: Buffer): HopPublicKey | null {
  const hash = hashOf(raw);
  if (raw.length === X25519_BYTES) {
    const key = x25519Public(raw);
    return { raw, hash, share: () => shareX25519(key) };
  }
  if (raw.length !== MLKEM_PUBLIC_BYTES) return null;
  const key = mlKemPublic(raw);
  return { raw, hash, share: () => shareMlKem(key) };
}

/** `raw`: 32 bytes of an X25519 private key, or the seed of ML-KEM-768. Null where the length fits neither. */
export function readHopPrivateKey(raw: Buffer): HopPrivateKey | null {
  if (raw.length === X25519_BYTES) {
    const key = createPrivateKey({ key: raw, format: "raw-private", asymmetricKeyType: "x25519" });
    return hopPrivateKey(rawPublic(createPublicKey(key)), X25519_BYTES, (share) => agreeX25519(key, share));
  }
  if (raw.length !== MLKEM_SEED_BYTES) return null;
  const key = createPrivateKey({ key: raw, format: "raw-seed", asymmetricKeyType: "ml-kem-768" });
  return hopPrivateKey(rawPublic(createPublicKey(key)), MLKEM_CIPHERTEXT_BYTES, (share) =>
    decapsulate(key, share),
  );
}

function hopPrivateKey(raw: Buffer, shareBytes: number, secretOf: HopPrivateKey["secretOf"]): HopPrivateKey {
  return { raw, hash: hashOf(raw), shareBytes, secretOf };
}

export function rawPublic(key: KeyObject): Buffer {
  return key.export({ format: "raw-public" });
}

export function mlKemPublic(raw: Buffer): KeyObject {
  return createPublicKey({ key: raw, format: "raw-public", asymmetricKeyType: "ml-kem-768" });
}

export function x25519Public(raw: Buffer): KeyObject {
  return createPublicKey({ key: raw, format: "raw-public", asymmetricKeyType: "x25519" });
}

export function shareMlKem(key: KeyObject): Shared {
  const { ciphertext, sharedKey } = encapsulate(key);
  return { share: Buffer.from(ciphertext), secret: Buffer.from(sharedKey) };
}

export function shareX25519(key: KeyObject): Shared {
  const own = generateKeyPairSync("x25519");
  const secret = diffieHellman({ privateKey: own.privateKey, publicKey: key });
  return { share: rawPublic(own.publicKey), secret };
}

/** Peers refuse a share with the highest bit set, and one of small order has no secret. */
export function agreeX25519(privateKey: KeyObject, share: Buffer): Buffer {
  if ((share[X25519_BYTES - 1] ?? 0xff) > 0x7f) throw new ProtocolError("VLESS Encryption: no X25519 share");
  try {
    return diffieHellman({ privateKey, publicKey: x25519Public(share) });
  } catch (cause) {
    throw new ProtocolError("VLESS Encryption: no X25519 share", { cause });
  }
}
