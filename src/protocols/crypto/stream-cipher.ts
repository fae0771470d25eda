/** Ciphers without authentication under one face: they hide what they carry and notice no change of it. */
import { createCipheriv, createDecipheriv, createHash } from "node:crypto";
import { hchacha20 } from "./hchacha20.ts";
import { rc4 } from "./rc4.ts";

export const STREAM_CIPHER_NAMES = [
  "aes-128-cfb",
  "aes-192-cfb",
  "aes-256-cfb",
  "aes-128-ctr",
  "aes-192-ctr",
  "aes-256-ctr",
  "rc4-md5",
  "chacha20",
  "chacha20-ietf",
  "xchacha20",
] as const;
export type StreamCipherName = (typeof STREAM_CIPHER_NAMES)[number];

/** The bytes of one direction, in order: as many come out as went in. */
export type StreamCipher = (bytes: Uint8Array) => Buffer;

export function ivBytesOf(name: StreamCipherName): number {
  if (name === "chacha20") return 8;
  if (name === "chacha20-ietf") return 12;
  return name === "xchacha20" ? 24 : 16;
}

/** `iv` has `ivBytesOf(name)` bytes and comes once under one key; `key` has the size that the cipher wants. */
export function openStreamCipher(
  name: StreamCipherName,
  key: Uint8Array,
  iv: Uint8Array,
  direction: "seal" | "open",
): StreamCipher {
  switch (name) {
    case "rc4-md5":
      return rc4(createHash("md5").update(key).update(iv).digest());
    case "chacha20":
    case "chacha20-ietf":
      return chacha20(key, iv);
    case "xchacha20":
      return chacha20(hchacha20(key, iv.subarray(0, 16)), iv.subarray(16));
    default: {
      const create = direction === "seal" ? createCipheriv : createDecipheriv;
      const cipher = create(name, key, iv);
      return (bytes) => cipher.update(bytes);
    }
  }
}

/** libcrypto takes 16 bytes, the counter first: what a shorter nonce leaves of them are its zeros. */
function chacha20(key: Uint8Array, nonce: Uint8Array): StreamCipher {
  const start = Buffer.alloc(16);
  start.set(nonce, start.length - nonce.length);
  const cipher = createCipheriv("chacha20", key, start);
  return (bytes) => cipher.update(bytes);
}
