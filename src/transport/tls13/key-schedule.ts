/** Keys of TLS 1.3 from the shared secret and the transcript (RFC 8446 §7.1). */
import { digest, hmac, type HmacHash } from "#platform/hmac.ts";
import type { CipherSuite } from "./cipher-suites.ts";
import { u16, vector8 } from "./wire.ts";

const NOTHING = Buffer.alloc(0);
const IV_BYTES = 12;
const LABEL_PREFIX = "tls13 ";
/** One byte each: lengths of contexts, numbers of blocks. */
const BYTES = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
/** What is in front of the context, by label, for the size that was asked for last. */
const heads = new Map<string, Buffer>();

/** HKDF-Extract (RFC 5869 §2.2). */
export function hkdfExtract(hash: HmacHash, salt: Uint8Array, secret: Uint8Array): Buffer {
  return hmac(hash, salt, secret);
}

/** HKDF-Expand (RFC 5869 §2.3). `info` in parts. */
export function hkdfExpand(
  hash: HmacHash,
  secret: Uint8Array,
  info: readonly Uint8Array[],
  size: number,
): Buffer {
  const first = hmac(hash, secret, ...info, byte(1));
  if (size <= first.length) return first.subarray(0, size);
  const blocks = [first];
  let made = first.length;
  for (let last = first; made < size; made += last.length) {
    last = hmac(hash, secret, last, ...info, byte(blocks.length + 1));
    blocks.push(last);
  }
  return Buffer.concat(blocks).subarray(0, size);
}

/** HKDF-Expand-Label: LENGTH(2) "tls13 "+LABEL(1+n) CONTEXT(1+n). */
export function expandLabel(
  hash: HmacHash,
  secret: Uint8Array,
  label: string,
  context: Uint8Array,
  size: number,
): Buffer {
  return hkdfExpand(hash, secret, [headOf(label, size), byte(context.length), context], size);
}

function byte(value: number): Uint8Array {
  const made = BYTES[value];
  if (made === undefined) throw new RangeError(`${value} is no byte`);
  return made;
}

function headOf(label: string, size: number): Buffer {
  const known = heads.get(label);
  if (known?.readUInt16BE(0) === size) return known;
  const head = Buffer.concat([u16(size), vector8(Buffer.from(LABEL_PREFIX + label, "latin1"))]);
  heads.set(label, head);
  return head;
}

/** What protects the records of one direction (RFC 8446 §7.3): this key, and the IV. */
export function trafficKey({ hash, keyBytes }: CipherSuite, secret: Uint8Array): Buffer {
  return expandLabel(hash, secret, "key", NOTHING, keyBytes);
}

export function trafficIv({ hash }: CipherSuite, secret: Uint8Array): Buffer {
  return expandLabel(hash, secret, "iv", NOTHING, IV_BYTES);
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
  return hmac(hash, key, transcript);
}

/** What a ticket stands for in the connection that uses it (RFC 8446 §4.6.1). `resumption`: the master secret for it. */
export function ticketSecret(
  { hash, hashBytes }: CipherSuite,
  resumption: Uint8Array,
  nonce: Uint8Array,
): Buffer {
  return expandLabel(hash, resumption, "resumption", nonce, hashBytes);
}

/** Secrets of both sides for one stage. */
export interface StageSecrets {
  readonly client: Buffer;
  readonly server: Buffer;
}

/** What all connections of one hash begin with. */
interface Beginning {
  /** The hash of no message. */
  readonly nothingHashed: Buffer;
  /** What the handshake secret is extracted with where no session is resumed. */
  readonly salt: Buffer;
}
/** Made at the first use and kept: a sixth of what a handshake derives. */
const beginnings: Partial<Record<HmacHash, Beginning>> = {};

function beginningOf({ hash, hashBytes }: CipherSuite): Beginning {
  const made = beginnings[hash];
  if (made !== undefined) return made;
  const zeros = Buffer.alloc(hashBytes);
  const nothingHashed = digest(hash, []);
  const early = hkdfExtract(hash, zeros, zeros);
  const salt = expandLabel(hash, early, "derived", nothingHashed, hashBytes);
  return (beginnings[hash] = { nothingHashed, salt });
}

/** The chain of secrets of one connection: early, handshake, master. */
export class KeySchedule {
  readonly #suite: CipherSuite;
  readonly #beginning: Beginning;
  /** Null: the early secret without a session. */
  #secret: Buffer | null;

  /** `resumed`: the secret of a ticket that both sides use. */
  constructor(suite: CipherSuite, resumed: Uint8Array | null = null) {
    this.#suite = suite;
    this.#beginning = beginningOf(suite);
    this.#secret = resumed === null ? null : hkdfExtract(suite.hash, Buffer.alloc(suite.hashBytes), resumed);
  }

  /** Proves that this side knows the secret of the ticket; to be called first. `transcript`: hash of the ClientHello without binders. */
  binder(transcript: Uint8Array): Buffer {
    return finishedData(this.#suite, this.#derive("res binder", this.#beginning.nothingHashed), transcript);
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

  /** For tickets that come later; to be called third. `transcript`: hash of ClientHello to the client's Finished. */
  resumptionSecret(transcript: Uint8Array): Buffer {
    return this.#derive("res master", transcript);
  }

  #advance(input: Uint8Array): void {
    const { salt, nothingHashed } = this.#beginning;
    const before = this.#secret === null ? salt : this.#derive("derived", nothingHashed);
    this.#secret = hkdfExtract(this.#suite.hash, before, input);
  }

  #secrets(stage: "hs" | "ap", transcript: Uint8Array): StageSecrets {
    return {
      client: this.#derive(`c ${stage} traffic`, transcript),
      server: this.#derive(`s ${stage} traffic`, transcript),
    };
  }

  #derive(label: string, transcript: Uint8Array): Buffer {
    const { hash, hashBytes } = this.#suite;
    if (this.#secret === null) throw new Error(`there is no session, and no secret "${label}" yet`);
    return expandLabel(hash, this.#secret, label, transcript, hashBytes);
  }
}
