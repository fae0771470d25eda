/** Keys of TLS 1.3 from the shared secret and the transcript (RFC 8446 §7.1). */
import { createHash, createHmac } from "node:crypto";
import type { CipherSuite } from "./cipher-suites.ts";
import { u16, vector8 } from "./wire.ts";

const NOTHING = Buffer.alloc(0);
const IV_BYTES = 12;

/** HKDF-Extract (RFC 5869 §2.2). */
export function hkdfExtract(hash: string, salt: Uint8Array, secret: Uint8Array): Buffer {
  return createHmac(hash, salt).update(secret).digest();
}

/** HKDF-Expand (RFC 5869 §2.3). */
export function hkdfExpand(hash: string, secret: Uint8Array, info: Uint8Array, size: number): Buffer {
  const blocks: Buffer[] = [];
  let made = 0;
  for (let last = NOTHING; made < size; made += last.length) {
    last = createHmac(hash, secret)
      .update(last)
      .update(info)
      .update(Buffer.of(blocks.length + 1))
      .digest();
    blocks.push(last);
  }
  return Buffer.concat(blocks).subarray(0, size);
}

/** HKDF-Expand-Label: LENGTH(2) "tls13 "+LABEL(1+n) CONTEXT(1+n). */
export function expandLabel(
  hash: string,
  secret: Uint8Array,
  label: string,
  context: Uint8Array,
  size: number,
): Buffer {
  const info = Buffer.concat([u16(size), vector8(Buffer.from(`tls13 ${label}`)), vector8(context)]);
  return hkdfExpand(hash, secret, info, size);
}

/** What protects the records of one direction (RFC 8446 §7.3). */
export interface TrafficKeys {
  readonly key: Buffer;
  readonly iv: Buffer;
}

export function trafficKeys({ hash, keyBytes }: CipherSuite, secret: Uint8Array): TrafficKeys {
  return {
    key: expandLabel(hash, secret, "key", NOTHING, keyBytes),
    iv: expandLabel(hash, secret, "iv", NOTHING, IV_BYTES),
  };
}

/** The secret behind a KeyUpdate (RFC 8446 §7.2). */
export function nextSecret({ hash, hashBytes }: CipherSuite, secret: Uint8Array): Buffer {
  return expandLabel(hash, secret, "traffic upd", NOTHING, hashBytes);
}

/** The content of Finished (RFC 8446 §4.4.4); `transcript` is the hash of all messages before it. */
export function finishedData(
  { hash, hashBytes }: CipherSuite,
  secret: Uint8Array,
  transcript: Uint8Array,
): Buffer {
  const key = expandLabel(hash, secret, "finished", NOTHING, hashBytes);
  return createHmac(hash, key).update(transcript).digest();
}

/** Secrets of both sides for one stage. */
export interface StageSecrets {
  readonly client: Buffer;
  readonly server: Buffer;
}

/** The chain of secrets of one connection: early, handshake, master. No pre-shared key. */
export class KeySchedule {
  readonly #suite: CipherSuite;
  #secret: Buffer;

  constructor(suite: CipherSuite) {
    this.#suite = suite;
    const zeros = Buffer.alloc(suite.hashBytes);
    this.#secret = hkdfExtract(suite.hash, zeros, zeros);
  }

  /** `shared`: of the key exchange. `transcript`: hash of ClientHello to ServerHello. */
  handshakeSecrets(shared: Uint8Array, transcript: Uint8Array): StageSecrets {
    this.#advance(shared);
    return this.#secrets("hs", transcript);
  }

  /** To be called second. `transcript`: hash of ClientHello to the server's Finished. */
  applicationSecrets(transcript: Uint8Array): StageSecrets {
    this.#advance(Buffer.alloc(this.#suite.hashBytes));
    return this.#secrets("ap", transcript);
  }

  #advance(input: Uint8Array): void {
    const { hash } = this.#suite;
    const salt = this.#derive("derived", createHash(hash).digest());
    this.#secret = hkdfExtract(hash, salt, input);
  }

  #secrets(stage: "hs" | "ap", transcript: Uint8Array): StageSecrets {
    return {
      client: this.#derive(`c ${stage} traffic`, transcript),
      server: this.#derive(`s ${stage} traffic`, transcript),
    };
  }

  #derive(label: string, transcript: Uint8Array): Buffer {
    const { hash, hashBytes } = this.#suite;
    return expandLabel(hash, this.#secret, label, transcript, hashBytes);
  }
}
