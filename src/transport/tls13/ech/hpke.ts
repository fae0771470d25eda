/** Hybrid Public Key Encryption in base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and an AEAD (RFC 9180). */
import type { KeyObject } from "node:crypto";
import { openCipher, TAG_BYTES } from "#transport/tls13/cipher.ts";
import { cipherSuite, type CipherSuite } from "#transport/tls13/cipher-suites.ts";
import { finishX25519, openX25519Share, x25519PublicBytes } from "#transport/tls13/key-exchange.ts";
import { hkdfExpand, hkdfExtract } from "#transport/tls13/key-schedule.ts";
import { numbers16, u16 } from "#transport/tls13/wire.ts";

/** Numbers of RFC 9180 §7. */
export const KEM_X25519 = 0x0020;
export const KDF_SHA256 = 0x0001;

const HASH = "sha256";
const HASH_BYTES = 32;
const NONCE_BYTES = 12;
const BASE_MODE = 0;
const NOTHING = Buffer.alloc(0);
const VERSION = Buffer.from("HPKE-v1");
const KEM_SUITE = Buffer.concat([Buffer.from("KEM"), u16(KEM_X25519)]);

/** AEADs by their numbers (RFC 9180 §7.3), as the suites of TLS 1.3 that use the same ones. */
const AEADS = new Map<number, number>([
  [1, 0x1301],
  [2, 0x1302],
  [3, 0x1303],
]);

/** Null: an AEAD that is not built. */
export function hpkeAead(id: number): CipherSuite | null {
  const suite = AEADS.get(id);
  return suite === undefined ? null : cipherSuite(suite);
}

/** The keys of one direction; each message has the next sequence number. */
export class HpkeContext {
  readonly #suite: CipherSuite;
  readonly #key: Buffer;
  readonly #baseNonce: Buffer;
  #sequence = 0;

  /** `shared`: of the key encapsulation (RFC 9180 §5.1). */
  constructor(aead: number, shared: Buffer, info: Uint8Array) {
    const suite = hpkeAead(aead);
    if (suite === null) throw new Error(`HPKE: the AEAD ${aead} is not built`);
    const name = Buffer.concat([Buffer.from("HPKE"), numbers16([KEM_X25519, KDF_SHA256, aead])]);
    const context = Buffer.concat([
      Buffer.of(BASE_MODE),
      labeledExtract(name, NOTHING, "psk_id_hash", NOTHING),
      labeledExtract(name, NOTHING, "info_hash", info),
    ]);
    const secret = labeledExtract(name, shared, "secret", NOTHING);
    this.#suite = suite;
    this.#key = labeledExpand(name, secret, "key", context, suite.keyBytes);
    this.#baseNonce = labeledExpand(name, secret, "base_nonce", context, NONCE_BYTES);
  }

  seal(plain: Uint8Array, aad: Uint8Array): Buffer {
    using cipher = openCipher(this.#suite, this.#key);
    const sealed = Buffer.alloc(plain.length + TAG_BYTES);
    cipher.sealInto(sealed, 0, this.#nextNonce(), plain, aad);
    return sealed;
  }

  /** Null: it was not sealed for this context; its sequence number is used up all the same. */
  open(sealed: Uint8Array, aad: Uint8Array): Buffer | null {
    if (sealed.length < TAG_BYTES) return null;
    using cipher = openCipher(this.#suite, this.#key);
    const plain = Buffer.alloc(sealed.length - TAG_BYTES);
    return cipher.openInto(plain, 0, this.#nextNonce(), sealed, aad) < 0 ? null : plain;
  }

  /** The base nonce XOR the sequence number (RFC 9180 §5.2). Of a few messages, so its last bytes are enough. */
  #nextNonce(): Buffer {
    const nonce = Buffer.from(this.#baseNonce);
    const last = nonce.readUInt32BE(NONCE_BYTES - 4);
    nonce.writeUInt32BE((last ^ this.#sequence++) >>> 0, NONCE_BYTES - 4);
    return nonce;
  }
}

export interface HpkeSender {
  /** The encapsulated key, for the recipient. */
  readonly enc: Buffer;
  readonly context: HpkeContext;
}

/** `publicKey`: the recipient's, 32 bytes. Throws `TlsFault` where the key is none. */
export function hpkeSender(publicKey: Buffer, aead: number, info: Uint8Array): HpkeSender {
  using own = openX25519Share();
  const shared = sharedSecret(own.finish(publicKey), own.share, publicKey);
  return { enc: own.share, context: new HpkeContext(aead, shared, info) };
}

/** `enc`: what the sender gave. Throws `TlsFault` where it is no key. */
export function hpkeRecipient(
  privateKey: KeyObject,
  enc: Buffer,
  aead: number,
  info: Uint8Array,
): HpkeContext {
  const shared = sharedSecret(finishX25519(privateKey, enc), enc, x25519PublicBytes(privateKey));
  return new HpkeContext(aead, shared, info);
}

/** ExtractAndExpand (RFC 9180 §4.1). */
function sharedSecret(agreed: Buffer, enc: Buffer, publicKey: Buffer): Buffer {
  const prk = labeledExtract(KEM_SUITE, NOTHING, "eae_prk", agreed);
  return labeledExpand(KEM_SUITE, prk, "shared_secret", Buffer.concat([enc, publicKey]), HASH_BYTES);
}

/** Both of RFC 9180 §4. */
function labeledExtract(suite: Buffer, salt: Uint8Array, label: string, input: Uint8Array): Buffer {
  return hkdfExtract(HASH, salt, Buffer.concat([VERSION, suite, Buffer.from(label), input]));
}

function labeledExpand(suite: Buffer, prk: Buffer, label: string, info: Uint8Array, size: number): Buffer {
  return hkdfExpand(HASH, prk, [u16(size), VERSION, suite, Buffer.from(label), info], size);
}
