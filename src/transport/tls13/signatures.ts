/** Signature schemes of TLS 1.3 and what CertificateVerify signs (RFC 8446 §4.2.3, §4.4.3). */
import { constants, type KeyObject, sign, verify } from "node:crypto";
import { TlsFault } from "./alerts.ts";
import type { CertificateVerify } from "./certificate-messages.ts";

interface Scheme {
  readonly id: number;
  /** Null: the algorithm has its own. */
  readonly hash: string | null;
  readonly keyType: "rsa" | "rsa-pss" | "ec" | "ed25519";
  /** Of an elliptic curve, as node:crypto names it. */
  readonly curve?: string;
  /** RSA-PSS with a salt of this many bytes. */
  readonly saltBytes?: number;
}

/** Those that TLS 1.3 allows in CertificateVerify; PKCS #1 v1.5 and SHA-1 are for certificates alone. */
const SCHEMES: readonly Scheme[] = [
  { id: 0x0403, hash: "sha256", keyType: "ec", curve: "prime256v1" },
  { id: 0x0503, hash: "sha384", keyType: "ec", curve: "secp384r1" },
  { id: 0x0603, hash: "sha512", keyType: "ec", curve: "secp521r1" },
  { id: 0x0804, hash: "sha256", keyType: "rsa", saltBytes: 32 },
  { id: 0x0805, hash: "sha384", keyType: "rsa", saltBytes: 48 },
  { id: 0x0806, hash: "sha512", keyType: "rsa", saltBytes: 64 },
  { id: 0x0807, hash: null, keyType: "ed25519" },
  { id: 0x0809, hash: "sha256", keyType: "rsa-pss", saltBytes: 32 },
  { id: 0x080a, hash: "sha384", keyType: "rsa-pss", saltBytes: 48 },
  { id: 0x080b, hash: "sha512", keyType: "rsa-pss", saltBytes: 64 },
];

export const ED25519_SCHEME = 0x0807;

const SPACES = Buffer.alloc(64, 0x20);

/** Of which side the signature is. */
export type Signer = "server" | "client";

function signedContent(signer: Signer, transcript: Uint8Array): Buffer {
  return Buffer.concat([SPACES, Buffer.from(`TLS 1.3, ${signer} CertificateVerify\0`), transcript]);
}

/** `transcript`: hash of all messages up to the Certificate. Throws `TlsFault`. */
export function checkSignature(
  { scheme: id, signature }: CertificateVerify,
  key: KeyObject,
  signer: Signer,
  transcript: Uint8Array,
): void {
  const scheme = SCHEMES.find((one) => one.id === id);
  if (scheme === undefined || !fits(scheme, key))
    throw new TlsFault("illegal_parameter", "CertificateVerify: a scheme that does not fit the key");
  if (!verify(scheme.hash, signedContent(signer, transcript), inputOf(scheme, key), signature))
    throw new TlsFault("decrypt_error", "CertificateVerify: a wrong signature");
}

/** By the first scheme of the peer that fits the key; null: there is none. */
export function signTranscript(
  key: KeyObject,
  accepted: readonly number[],
  signer: Signer,
  transcript: Uint8Array,
): CertificateVerify | null {
  for (const id of accepted) {
    const scheme = SCHEMES.find((one) => one.id === id);
    if (scheme === undefined || !fits(scheme, key)) continue;
    const signature = sign(scheme.hash, signedContent(signer, transcript), inputOf(scheme, key));
    return { scheme: id, signature };
  }
  return null;
}

function fits({ keyType, curve }: Scheme, key: KeyObject): boolean {
  if (key.asymmetricKeyType !== keyType) return false;
  return curve === undefined || key.asymmetricKeyDetails?.namedCurve === curve;
}

function inputOf({ saltBytes }: Scheme, key: KeyObject) {
  if (saltBytes === undefined) return key;
  return { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: saltBytes };
}
