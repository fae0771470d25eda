/** Digests and HMAC for the many small pieces of a key schedule: by the runtime's own libcrypto through FFI where it is there, else by `node:crypto`. */
import { createHash, createHmac } from "node:crypto";
import { Hmac, type HmacHash } from "./linux/hmac.ts";

export type { HmacHash } from "./linux/hmac.ts";

interface Library {
  hmac?: Hmac | null;
}
/** One for each thread, loaded at the first use and kept. */
const library: Library = {};

function open(): Hmac | null {
  if (library.hmac === undefined) library.hmac = Hmac.open();
  return library.hmac;
}

/** Of all parts, one behind the other. */
export function hmac(hash: HmacHash, key: Uint8Array, ...data: readonly Uint8Array[]): Buffer {
  const made = open()?.of(hash, key, data) ?? null;
  if (made !== null) return made;
  const slow = createHmac(hash, key);
  for (const part of data) slow.update(part);
  return slow.digest();
}

/** Of all parts, one behind the other. */
export function digest(hash: HmacHash, parts: readonly Uint8Array[]): Buffer {
  const made = open()?.digest(hash, parts) ?? null;
  if (made !== null) return made;
  const slow = createHash(hash);
  for (const part of parts) slow.update(part);
  return slow.digest();
}
