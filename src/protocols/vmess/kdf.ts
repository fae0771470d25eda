/** Keys of the VMess AEAD header. */
import { createHash, createHmac } from "node:crypto";

const SALT = "VMess AEAD KDF";
const COMMAND_KEY_SALT = "c48619fe-8f02-49e0-b9e9-edf763e17e21";
const BLOCK_BYTES = 64;

/** What a user is known by: MD5(id, fixed text). */
export function commandKey(id: Uint8Array): Buffer {
  return createHash("md5").update(id).update(COMMAND_KEY_SALT).digest();
}

type Hash = (data: Uint8Array) => Buffer;

/**
 * Nested HMACs: the innermost is HMAC-SHA256 under a fixed key, each path element keys an HMAC around the one before,
 * and the outermost is taken of `key`. 32 bytes. Path elements have at most 64 bytes.
 */
export function kdf(key: Uint8Array, ...path: readonly (string | Uint8Array)[]): Buffer {
  let hash: Hash = (data) => createHmac("sha256", SALT).update(data).digest();
  for (const element of path) hash = hmacOver(hash, Buffer.from(element));
  return hash(key);
}

function hmacOver(inner: Hash, key: Buffer): Hash {
  const inside = Buffer.alloc(BLOCK_BYTES, 0x36);
  const outside = Buffer.alloc(BLOCK_BYTES, 0x5c);
  for (const [at, byte] of key.entries()) {
    inside[at] = 0x36 ^ byte;
    outside[at] = 0x5c ^ byte;
  }
  return (data) => inner(Buffer.concat([outside, inner(Buffer.concat([inside, data]))]));
}

export function kdf16(key: Uint8Array, ...path: readonly (string | Uint8Array)[]): Buffer {
  return kdf(key, ...path).subarray(0, 16);
}

export function kdf12(key: Uint8Array, ...path: readonly (string | Uint8Array)[]): Buffer {
  return kdf(key, ...path).subarray(0, 12);
}

/** 16 bytes made 32, for ChaCha20. */
export function expandKey(key: Uint8Array): Buffer {
  const first = createHash("md5").update(key).digest();
  return Buffer.concat([first, createHash("md5").update(first).digest()]);
}

/** Key and IV of the answers come from those of the request. */
export function answerKey(value: Uint8Array): Buffer {
  return createHash("sha256").update(value).digest().subarray(0, 16);
}
