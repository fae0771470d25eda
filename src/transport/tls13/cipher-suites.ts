/** The cipher suites of TLS 1.3 (RFC 8446 §B.4). */
import type { KeptAeadName } from "#platform/aead.ts";
import type { HmacHash } from "#platform/hmac.ts";

export interface CipherSuite {
  /** Its number on the wire. */
  readonly id: number;
  readonly hash: HmacHash;
  readonly hashBytes: number;
  readonly aead: KeptAeadName;
  readonly keyBytes: number;
  /** Records that one key may seal before it is changed (RFC 8446 §5.5). */
  readonly mostRecords: number;
}

/** AES-GCM: 2^24.5 full records; changed well before. */
const AES_RECORDS = 2 ** 23;
/** ChaCha20-Poly1305 wears out only with the sequence number. */
const CHACHA_RECORDS = 2 ** 47;

const SUITES: readonly CipherSuite[] = [
  {
    id: 0x1301,
    hash: "sha256",
    hashBytes: 32,
    aead: "aes-128-gcm",
    keyBytes: 16,
    mostRecords: AES_RECORDS,
  },
  {
    id: 0x1302,
    hash: "sha384",
    hashBytes: 48,
    aead: "aes-256-gcm",
    keyBytes: 32,
    mostRecords: AES_RECORDS,
  },
  {
    id: 0x1303,
    hash: "sha256",
    hashBytes: 32,
    aead: "chacha20-poly1305",
    keyBytes: 32,
    mostRecords: CHACHA_RECORDS,
  },
];

/** Null: not one of TLS 1.3 that is spoken here. */
export function cipherSuite(id: number): CipherSuite | null {
  return SUITES.find((suite) => suite.id === id) ?? null;
}
