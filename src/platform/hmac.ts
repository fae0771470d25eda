/** HMAC for the many small pieces of a key schedule. */
import { createHmac } from "node:crypto";
import { Hmac, type HmacHash } from "./linux/hmac.ts";

export type { HmacHash } from "./linux/hmac.ts";

interface Library {
  hmac?: Hmac | null;
}
/** One for each thread, loaded at the first use and kept. */
const library: Library = {};

/** Of all parts, one behind the other. By the runtime's own libcrypto through FFI where it is there, else by `node:crypto`. */
export function hmac(hash: HmacHash, key: Uint8Array, ...data: readonly Uint8Array[]): Buffer {
  if (library.hmac === undefined) library.hmac = Hmac.open();
  const made = library.hmac?.of(hash, key, data) ?? null;
  if (made !== null) return made;
  const slow = createHmac(hash, key);
  for (const part of data) slow.update(part);
  return slow.digest();
}
