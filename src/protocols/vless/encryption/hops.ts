/** The chain of long-lived keys at the beginning of a handshake: one share a hop, each bound to the hop before it. */
import type { Cipheriv } from "node:crypto";
import { timingSafeEqual } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import { HASH_BYTES, IV_BYTES, openMask } from "./cipher.ts";
import { type HopPrivateKey, type HopPublicKey, X25519_BYTES } from "./keys.ts";

/** Of a share, so much is masked by the hop before. */
const MASKED_BYTES = X25519_BYTES;

// IV(16) { SHARE(32 | 1088) [ HASH OF THE NEXT KEY(32) ] } for each hop

export interface Hops {
  /** Without the iv. */
  readonly bytes: Buffer;
  /** The secret of the last hop, which is the server. */
  readonly secret: Buffer;
}

/** `hidesKeys`: shares look random. */
export function encodeHops(iv: Buffer, keys: readonly HopPublicKey[], hidesKeys: boolean): Hops {
  const pieces: Buffer[] = [];
  let before: Cipheriv | null = null;
  let secret = Buffer.alloc(0);
  for (const [index, key] of keys.entries()) {
    const shared = key.share();
    let { share } = shared;
    if (hidesKeys) share = openMask(key.raw, iv).update(share);
    if (before !== null)
      share = Buffer.concat([before.update(share.subarray(0, MASKED_BYTES)), share.subarray(MASKED_BYTES)]);
    pieces.push(share);
    secret = Buffer.from(shared.secret);
    const next = keys[index + 1];
    if (next === undefined) break;
    before = openMask(secret, iv);
    pieces.push(before.update(next.hash));
  }
  return { bytes: Buffer.concat(pieces), secret };
}

/** How many bytes a client sends for these keys, the iv included. */
export function hopsBytes(keys: readonly HopPrivateKey[]): number {
  return keys.reduce((sum, { shareBytes }) => sum + shareBytes, IV_BYTES + (keys.length - 1) * HASH_BYTES);
}

/** The secret of the last hop. `bytes` has the length that `hopsBytes` says. Throws `ProtocolError`. */
export function decodeHops(bytes: Buffer, keys: readonly HopPrivateKey[], hidesKeys: boolean): Buffer {
  const iv = bytes.subarray(0, IV_BYTES);
  let at = IV_BYTES;
  let before: Cipheriv | null = null;
  let secret = Buffer.alloc(0);
  for (const [index, key] of keys.entries()) {
    let share = Buffer.from(bytes.subarray(at, at + key.shareBytes));
    at += key.shareBytes;
    if (before !== null) share.set(before.update(share.subarray(0, MASKED_BYTES)));
    if (hidesKeys) share = openMask(key.raw, iv).update(share);
    secret = Buffer.from(key.secretOf(share));
    const next = keys[index + 1];
    if (next === undefined) break;
    before = openMask(secret, iv);
    const hash = before.update(bytes.subarray(at, at + HASH_BYTES));
    at += HASH_BYTES;
    if (!timingSafeEqual(hash, next.hash))
      throw new ProtocolError("VLESS Encryption: the next hop is another one");
  }
  return secret;
}
