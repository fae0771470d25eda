/** The throw-away certificate by which a REALITY server proves that it knows the key of the token. */
import { createPublicKey, type KeyObject, timingSafeEqual, verify } from "node:crypto";
import { hmac } from "#platform/hmac.ts";
import type { ShownChain } from "#transport/tls13/client-handshake.ts";
import { keyOfLeaf, readLeaf } from "#transport/tls13/leaf-certificate.ts";

const NOTHING = Buffer.alloc(0);
const KEY_BYTES = 32;
const PROOF_BYTES = 64;
/** Where the value of its only extension is: the ML-DSA-65 signature. */
const MLDSA_AT = 126;
const MLDSA_BYTES = 3309;
/** SubjectPublicKeyInfo of ML-DSA-65 in front of the raw key (RFC 9881). */
const MLDSA_SPKI = Buffer.from("308207b2300b0609608648016503040312038207a100", "hex");

/** `authentic`; `no signature`: it knows the token's key, and not the ML-DSA-65 key; `foreign`: it is a certificate of another kind. */
export type Proof = "authentic" | "no signature" | "foreign";

/** What a server is held against. */
export interface ExpectedProof {
  readonly authKey: Buffer;
  /** The server's raw public key of 1952 bytes; null: not asked for. */
  readonly mldsa65: Uint8Array | null;
}

/** Of the server's own certificate. */
export interface LeafKey {
  readonly key: KeyObject;
  /** The same as 32 bytes; null: it is of another kind. */
  readonly ed25519: Buffer | null;
}

/** Throws `TlsFault` where the certificate or its key cannot be read. */
export function readLeafKey(shown: Pick<ShownChain, "chain">): LeafKey {
  const key = keyOfLeaf(readLeaf(shown));
  if (key.asymmetricKeyType !== "ed25519") return { key, ed25519: null };
  return { key, ed25519: key.export({ type: "spki", format: "der" }).subarray(-KEY_BYTES) };
}

/**
 * A server's certificates differ in their proof alone for as long as it runs (with ML-DSA-65 in the signature, too, and
 * nothing is found here): what was read of the last one that was authentic.
 */
export class KnownLeaf {
  #before: Buffer = NOTHING;
  #leaf: LeafKey | null = null;

  /** Null: it is another certificate. */
  find({ chain: [der] }: Pick<ShownChain, "chain">): LeafKey | null {
    return der !== undefined && withoutProof(der).equals(this.#before) ? this.#leaf : null;
  }

  keep({ chain: [der] }: Pick<ShownChain, "chain">, leaf: LeafKey): void {
    if (der === undefined || leaf === this.#leaf) return;
    this.#before = Buffer.from(withoutProof(der));
    this.#leaf = leaf;
  }
}

function withoutProof(der: Buffer): Buffer {
  return der.subarray(0, Math.max(0, der.length - PROOF_BYTES));
}

export function checkProof(
  shown: ShownChain,
  { ed25519: key }: LeafKey,
  { authKey, mldsa65 }: ExpectedProof,
): Proof {
  const der = shown.chain[0];
  if (der === undefined || key === null) return "foreign";
  const expected = hmac("sha512", authKey, key);
  const proof = der.subarray(-PROOF_BYTES);
  if (proof.length !== PROOF_BYTES || !timingSafeEqual(expected, proof)) return "foreign";
  if (mldsa65 === null) return "authentic";
  const signed = hmac("sha512", authKey, key, shown.clientHello, shown.serverHello);
  return isSigned(der, signed, mldsa65) ? "authentic" : "no signature";
}

function isSigned(der: Buffer, digest: Buffer, mldsa65: Uint8Array): boolean {
  const signature = der.subarray(MLDSA_AT, MLDSA_AT + MLDSA_BYTES);
  if (signature.length !== MLDSA_BYTES) return false;
  const key = createPublicKey({ key: Buffer.concat([MLDSA_SPKI, mldsa65]), type: "spki", format: "der" });
  return verify(null, digest, key, signature);
}
