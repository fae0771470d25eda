/** Keys of the VMess AEAD header. */
import { createHmac, hash } from "node:crypto";
import { sha256Compression } from "#platform/single-blocks.ts";
import { NestedHmac } from "#protocols/crypto/nested-hmac.ts";
import { Sha256States } from "#protocols/crypto/sha256-states.ts";

const SALT = "VMess AEAD KDF";
const COMMAND_KEY_SALT = "c48619fe-8f02-49e0-b9e9-edf763e17e21";
const BLOCK_BYTES = 64;
const KEY_BYTES = 16;

/** What a user is known by: MD5(id, fixed text). */
export function commandKey(id: Uint8Array): Buffer {
  return hash("md5", Buffer.concat([id, Buffer.from(COMMAND_KEY_SALT)]), "buffer");
}

interface Library {
  native?: { readonly sha256: Sha256States; readonly hmac: NestedHmac } | null;
}
/** Of each thread, with the states behind the labels. */
const library: Library = {};

/** Null: this runtime lends no compression function. */
function native(): NonNullable<Library["native"]> | null {
  if (library.native === undefined) {
    const compression = sha256Compression();
    const sha256 = compression && new Sha256States(compression);
    library.native = sha256 && { sha256, hmac: new NestedHmac(sha256, Buffer.from(SALT)) };
  }
  return library.native;
}

/**
 * Nested HMACs: the innermost is HMAC-SHA256 under a fixed key, label and path elements each key an HMAC around the one
 * before, and the outermost is taken of `key`. So many bytes of it: 32, 16 for a key, or 12 for a nonce. `key` has at most 55
 * bytes, path elements 64, and labels are few, for each thread remembers them.
 */
export function kdf(
  bytes: 32 | 16 | 12,
  key: Uint8Array,
  label: string,
  ...path: readonly Uint8Array[]
): Buffer {
  const digest = native()?.hmac.of(key, label, path) ?? byHmacs(key, [Buffer.from(label), ...path]);
  const own = Buffer.allocUnsafe(bytes);
  own.set(digest.subarray(0, bytes));
  return own;
}

export const kdf16 = (key: Uint8Array, label: string, ...path: readonly Uint8Array[]): Buffer =>
  kdf(16, key, label, ...path);

export const kdf12 = (key: Uint8Array, label: string, ...path: readonly Uint8Array[]): Buffer =>
  kdf(12, key, label, ...path);

type Hash = (data: Uint8Array) => Buffer;

function byHmacs(key: Uint8Array, path: readonly Uint8Array[]): Buffer {
  let hashed: Hash = (data) => createHmac("sha256", SALT).update(data).digest();
  for (const element of path) hashed = hmacOver(hashed, element);
  return hashed(key);
}

function hmacOver(inner: Hash, key: Uint8Array): Hash {
  const inside = Buffer.alloc(BLOCK_BYTES, 0x36);
  const outside = Buffer.alloc(BLOCK_BYTES, 0x5c);
  for (const [at, byte] of key.entries()) {
    inside[at] = 0x36 ^ byte;
    outside[at] = 0x5c ^ byte;
  }
  return (data) => inner(Buffer.concat([outside, inner(Buffer.concat([inside, data]))]));
}

/** 16 bytes made 32, for ChaCha20. */
export function expandKey(key: Uint8Array): Buffer {
  const first = hash("md5", key, "buffer");
  return Buffer.concat([first, hash("md5", first, "buffer")]);
}

/** Key and IV of the answers come from those of the request. */
export function answerKey(value: Uint8Array): Buffer {
  const digest = native()?.sha256.finish(value) ?? hash("sha256", value, "buffer");
  const own = Buffer.allocUnsafe(KEY_BYTES);
  own.set(digest.subarray(0, KEY_BYTES));
  return own;
}
