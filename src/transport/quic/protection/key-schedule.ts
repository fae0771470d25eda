/** Secrets and keys of packet protection (RFC 9001 §5). */
import { createHmac } from "node:crypto";

export const AES_128_GCM_SHA256 = 0x1301;
export const AES_256_GCM_SHA384 = 0x1302;
export const CHACHA20_POLY1305_SHA256 = 0x1303;

/** Of the cipher suite: its hash, and the bytes of its key. */
const SUITES: Readonly<Record<number, { readonly hash: string; readonly keyBytes: number }>> = {
  [AES_128_GCM_SHA256]: { hash: "sha256", keyBytes: 16 },
  [AES_256_GCM_SHA384]: { hash: "sha384", keyBytes: 32 },
  [CHACHA20_POLY1305_SHA256]: { hash: "sha256", keyBytes: 32 },
};

const IV_BYTES = 12;
/** RFC 9001 §5.2. */
const INITIAL_SALT = Buffer.from("38762cf7f55934b34d179ae6a4c80cadccbb7f0a", "hex");

export interface DirectionKeys {
  readonly key: Uint8Array;
  readonly iv: Uint8Array;
  /** Of header protection; stays the same when keys are updated. */
  readonly headerKey: Uint8Array;
}

/** HKDF-Expand-Label (RFC 8446 §7.1) without context; at most 48 bytes. */
export function expandLabel(hash: string, secret: Uint8Array, label: string, bytes: number): Buffer {
  const text = Buffer.from(`tls13 ${label}`);
  const head = Buffer.of(bytes >> 8, bytes & 0xff, text.length);
  const info = Buffer.concat([head, text, Buffer.of(0, 1)]); // an empty context, and the number of the only block
  return createHmac(hash, secret).update(info).digest().subarray(0, bytes);
}

/** Those of Initial packets, which everybody can derive from the first connection id of the client. */
export function initialSecret(destination: Uint8Array, side: "client" | "server"): Buffer {
  const common = createHmac("sha256", INITIAL_SALT).update(destination).digest();
  return expandLabel("sha256", common, `${side} in`, 32);
}

/** Throws for a suite that TLS of QUIC does not agree on. */
export function deriveKeys(suite: number, secret: Uint8Array): DirectionKeys {
  const { hash, keyBytes } = suiteOf(suite);
  return {
    key: expandLabel(hash, secret, "quic key", keyBytes),
    iv: expandLabel(hash, secret, "quic iv", IV_BYTES),
    headerKey: expandLabel(hash, secret, "quic hp", keyBytes),
  };
}

/** Of the next key phase (RFC 9001 §6.1). */
export function nextSecret(suite: number, secret: Uint8Array): Buffer {
  return expandLabel(suiteOf(suite).hash, secret, "quic ku", secret.length);
}

function suiteOf(suite: number): { readonly hash: string; readonly keyBytes: number } {
  const found = SUITES[suite];
  if (found === undefined) throw new Error(`cipher suite ${suite} is not one of QUIC`);
  return found;
}
