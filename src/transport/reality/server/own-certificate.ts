/**
 * The throw-away certificate of a REALITY server: minimal, self-signed in name only. In place of a signature stands the
 * HMAC that the client expects; with ML-DSA-65 the only extension holds a signature of both hellos.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { der, sequence } from "#lib/der.ts";
import { hmac } from "#platform/hmac.ts";

const PROOF_BYTES = 64;
const MLDSA_AT = 126;
const MLDSA_BYTES = 3309;
/** PKCS #8 of ML-DSA-65 in front of the seed of 32 bytes (RFC 9881 §6). */
const MLDSA_PKCS8 = Buffer.from("3034020100300b060960864801650304031204228020", "hex");
const ED25519 = Buffer.from("300506032b6570", "hex");
const VERSION_3 = Buffer.from("a003020102", "hex");
const SERIAL = Buffer.from("020100", "hex");
const NO_NAME = Buffer.from("3000", "hex");

/** Both hellos, whole messages. */
export interface Hellos {
  readonly clientHello: Buffer;
  readonly serverHello: Buffer;
}

export class OwnCertificate {
  /** Ed25519. */
  readonly key: KeyObject;
  readonly #raw: Buffer;
  readonly #template: Buffer;
  readonly #mldsa: KeyObject | null;

  /** `mldsa65Seed`: 32 bytes; null: without ML-DSA-65. `key`: Ed25519; absent: made anew. */
  constructor(mldsa65Seed: Uint8Array | null, key = generateKeyPairSync("ed25519").privateKey) {
    const spki = createPublicKey(key).export({ type: "spki", format: "der" });
    this.key = key;
    this.#raw = spki.subarray(-32);
    this.#template = encodeCertificate(spki, mldsa65Seed !== null);
    this.#mldsa = mldsa65Seed === null ? null : mldsa65Key(mldsa65Seed);
  }

  /** Of one connection's DER. */
  get bytes(): number {
    return this.#template.length;
  }

  /** PKCS #8 in DER, for other threads. */
  get privateKey(): Buffer {
    return this.key.export({ type: "pkcs8", format: "der" });
  }

  /** DER for one connection. */
  issue(authKey: Buffer, { clientHello, serverHello }: Hellos): Buffer {
    const certificate = Buffer.from(this.#template);
    if (this.#mldsa !== null) {
      const digest = hmac("sha512", authKey, this.#raw, clientHello, serverHello);
      sign(null, digest, this.#mldsa).copy(certificate, MLDSA_AT);
    }
    certificate.set(hmac("sha512", authKey, this.#raw), certificate.length - PROOF_BYTES);
    return certificate;
  }
}

/** ML-DSA-65 private key of a seed of 32 bytes. */
export function mldsa65Key(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([MLDSA_PKCS8, seed]), type: "pkcs8", format: "der" });
}

function encodeCertificate(spki: Buffer, isSigned: boolean): Buffer {
  const time = der(0x18, Buffer.from("00010101000000Z"));
  const body = [VERSION_3, SERIAL, ED25519, NO_NAME, sequence(time, time), NO_NAME, spki];
  if (isSigned) {
    const extension = sequence(Buffer.from("060100", "hex"), der(0x04, Buffer.alloc(MLDSA_BYTES)));
    body.push(der(0xa3, sequence(extension)));
  }
  return sequence(sequence(...body), ED25519, der(0x03, Buffer.of(0), Buffer.alloc(PROOF_BYTES)));
}
