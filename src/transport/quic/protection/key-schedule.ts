/** Secrets and keys of packet protection (RFC 9001 §5). */
import { hmac, type HmacHash } from "#platform/hmac.ts";

export const AES_128_GCM_SHA256 = 0x1301;
const AES_256_GCM_SHA384 = 0x1302;
export const CHACHA20_POLY1305_SHA256 = 0x1303;

const IV_BYTES = 12;
const INITIAL_SECRET_BYTES = 32;
/** RFC 9001 §5.2. */
const INITIAL_SALT = Buffer.from("38762cf7f55934b34d179ae6a4c80cadccbb7f0a", "hex");
const INITIAL_INFO = {
  client: infoOf("client in", INITIAL_SECRET_BYTES),
  server: infoOf("server in", INITIAL_SECRET_BYTES),
} as const;

/** What a cipher suite means for its keys, with the input of each derivation. */
interface Suite {
  readonly hash: HmacHash;
  readonly keyBytes: number;
  readonly key: Uint8Array;
  readonly iv: Uint8Array;
  readonly headerKey: Uint8Array;
  readonly next: Uint8Array;
}

const SUITES: Readonly<Record<number, Suite>> = {
  [AES_128_GCM_SHA256]: suiteWith("sha256", 32, 16),
  [AES_256_GCM_SHA384]: suiteWith("sha384", 48, 32),
  [CHACHA20_POLY1305_SHA256]: suiteWith("sha256", 32, 32),
};

export interface DirectionKeys {
  readonly key: Uint8Array;
  readonly iv: Uint8Array;
  /** Of header protection; stays the same when keys are updated. */
  readonly headerKey: Uint8Array;
}

function suiteWith(hash: HmacHash, hashBytes: number, keyBytes: number): Suite {
  return {
    hash,
    keyBytes,
    key: infoOf("quic key", keyBytes),
    iv: infoOf("quic iv", IV_BYTES),
    headerKey: infoOf("quic hp", keyBytes),
    next: infoOf("quic ku", hashBytes),
  };
}

/** The input of HKDF-Expand-Label (RFC 8446 §7.1) without context, for its only block. */
function infoOf(label: string, bytes: number): Uint8Array {
  const text = Buffer.from(`tls13 ${label}`);
  return Buffer.concat([Buffer.of(bytes >> 8, bytes & 0xff, text.length), text, Buffer.of(0, 1)]);
}

/** Those of Initial packets, which everybody can derive from the first connection id of the client. */
export function initialSecret(destination: Uint8Array, side: "client" | "server"): Buffer {
  return hmac("sha256", hmac("sha256", INITIAL_SALT, destination), INITIAL_INFO[side]);
}

/** Throws for a suite that TLS of QUIC does not agree on. */
export function deriveKeys(suite: number, secret: Uint8Array): DirectionKeys {
  const { hash, keyBytes, key, iv, headerKey } = suiteOf(suite);
  return {
    key: hmac(hash, secret, key).subarray(0, keyBytes),
    iv: hmac(hash, secret, iv).subarray(0, IV_BYTES),
    headerKey: hmac(hash, secret, headerKey).subarray(0, keyBytes),
  };
}

/** Of the next key phase (RFC 9001 §6.1). */
export function nextSecret(suite: number, secret: Uint8Array): Buffer {
  const { hash, next } = suiteOf(suite);
  return hmac(hash, secret, next);
}

function suiteOf(suite: number): Suite {
  const found = SUITES[suite];
  if (found === undefined) throw new Error(`cipher suite ${suite} is not one of QUIC`);
  return found;
}
