/** The handshake, Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s (https://www.wireguard.com/papers/wireguard.pdf, 5.4.2 and 5.4.3). */
import * as at from "./messages.ts";
import { agree, derive, generatePair, hash, type KeyPair, open, seal } from "./primitives.ts";
import { KEY_BYTES, TAG_BYTES } from "./sizes.ts";

const FIRST_CHAIN = hash("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s");
const FIRST_HASH = hash(FIRST_CHAIN, "WireGuard v1 zx2c4 Jason@zx2c4.com");
const NOTHING = new Uint8Array(0);

/** What this side knows of the other before they talk. */
export interface Partner {
  readonly publicKey: Buffer;
  /** 32 bytes, zero where none was agreed. */
  readonly presharedKey: Buffer;
  /** Of the static keys of both. */
  readonly shared: Buffer;
}

/** The keys that a handshake ends with. */
export interface SessionKeys {
  readonly sending: Buffer;
  readonly receiving: Buffer;
  readonly localIndex: number;
  readonly remoteIndex: number;
  readonly isInitiator: boolean;
}

/** What both sides have said so far, as a key and a hash. */
class Transcript {
  #chain: Buffer;
  #hash: Buffer;

  constructor(responder: Uint8Array, from?: Transcript) {
    this.#chain = from === undefined ? FIRST_CHAIN : from.#chain;
    this.#hash = from === undefined ? hash(FIRST_HASH, responder) : from.#hash;
  }

  copy(): Transcript {
    return new Transcript(NOTHING, this);
  }

  ephemeral(publicKey: Uint8Array): void {
    this.#hash = hash(this.#hash, publicKey);
    this.secret(publicKey);
  }

  /** The key for what is sealed next. */
  secret(input: Uint8Array): Buffer {
    const [chain, key] = derive(2, this.#chain, input);
    this.#chain = chain;
    return key;
  }

  preshared(presharedKey: Uint8Array): Buffer {
    const [chain, tag, key] = derive(3, this.#chain, presharedKey);
    this.#chain = chain;
    this.#hash = hash(this.#hash, tag);
    return key;
  }

  seal(key: Uint8Array, plain: Uint8Array): Buffer {
    const sealed = seal(key, plain, this.#hash);
    this.#hash = hash(this.#hash, sealed);
    return sealed;
  }

  /** Null where it was not sealed by this key behind the same words. */
  open(key: Uint8Array, sealed: Uint8Array): Buffer | null {
    const plain = open(key, sealed, this.#hash);
    if (plain !== null) this.#hash = hash(this.#hash, sealed);
    return plain;
  }

  /** The initiator's key for sending, and the responder's. */
  split(): readonly [Buffer, Buffer] {
    const [first, second] = derive(2, this.#chain, NOTHING);
    return [first, second];
  }
}

/** An initiation of ours that waits for its response. */
export class Initiation {
  readonly localIndex: number;
  /** Without its MACs. */
  readonly message: Buffer;
  readonly #own: KeyPair;
  readonly #partner: Partner;
  readonly #ephemeral = generatePair();
  readonly #transcript: Transcript;

  /** Null where the partner's key has no secret with ours. */
  static begin(own: KeyPair, partner: Partner, localIndex: number, timestamp: Uint8Array): Initiation | null {
    const initiation = new Initiation(own, partner, localIndex);
    return initiation.#write(timestamp) ? initiation : null;
  }

  private constructor(own: KeyPair, partner: Partner, localIndex: number) {
    this.localIndex = localIndex;
    this.message = at.blank(at.INITIATION);
    this.#own = own;
    this.#partner = partner;
    this.#transcript = new Transcript(partner.publicKey);
  }

  #write(timestamp: Uint8Array): boolean {
    const { message } = this;
    const transcript = this.#transcript;
    const secret = agree(this.#ephemeral, this.#partner.publicKey);
    if (secret === null) return false;
    message.writeUInt32LE(this.localIndex, 4);
    message.set(this.#ephemeral.publicKey, at.EPHEMERAL_AT);
    transcript.ephemeral(this.#ephemeral.publicKey);
    message.set(transcript.seal(transcript.secret(secret), this.#own.publicKey), at.STATIC_AT);
    message.set(transcript.seal(transcript.secret(this.#partner.shared), timestamp), at.TIMESTAMP_AT);
    return true;
  }

  /** Null where the response is not of the partner; the initiation goes on waiting. */
  finish(response: Buffer): SessionKeys | null {
    const transcript = this.#transcript.copy();
    const theirs = response.subarray(at.ANSWER_EPHEMERAL_AT, at.EMPTY_AT);
    const ofEphemerals = agree(this.#ephemeral, theirs);
    const ofOwn = agree(this.#own, theirs);
    if (ofEphemerals === null || ofOwn === null) return null;
    transcript.ephemeral(theirs);
    transcript.secret(ofEphemerals);
    transcript.secret(ofOwn);
    const key = transcript.preshared(this.#partner.presharedKey);
    const empty = response.subarray(at.EMPTY_AT, at.EMPTY_AT + TAG_BYTES);
    if (transcript.open(key, empty) === null) return null;
    const [sending, receiving] = transcript.split();
    const remoteIndex = at.senderOf(response);
    return { sending, receiving, localIndex: this.localIndex, remoteIndex, isInitiator: true };
  }
}

/** An initiation of the other side, read as far as it says who that is. */
export class ReceivedInitiation {
  /** The static key that it claims, and has proved once `timestampOf` answers. */
  readonly publicKey: Buffer;
  readonly #message: Buffer;
  readonly #transcript: Transcript;

  /** `message` is lent until it returns. Null where it is not for this key. */
  static read(own: KeyPair, message: Buffer): ReceivedInitiation | null {
    const transcript = new Transcript(own.publicKey);
    const ephemeral = message.subarray(at.EPHEMERAL_AT, at.STATIC_AT);
    const secret = agree(own, ephemeral);
    if (secret === null) return null;
    transcript.ephemeral(ephemeral);
    const claimed = message.subarray(at.STATIC_AT, at.STATIC_AT + KEY_BYTES + TAG_BYTES);
    const publicKey = transcript.open(transcript.secret(secret), claimed);
    return publicKey && new ReceivedInitiation(Buffer.from(message), publicKey, transcript);
  }

  private constructor(message: Buffer, publicKey: Buffer, transcript: Transcript) {
    this.#message = message;
    this.publicKey = publicKey;
    this.#transcript = transcript;
  }

  /** 12 bytes that grow with each initiation; null where it is not of the partner. */
  timestampOf(partner: Partner): Buffer | null {
    const sealed = this.#message.subarray(at.TIMESTAMP_AT, at.TIMESTAMP_AT + at.TIMESTAMP_BYTES + TAG_BYTES);
    return this.#transcript.open(this.#transcript.secret(partner.shared), sealed);
  }

  /** The response, without its MACs, and what it ends with. Once, behind `timestampOf`. */
  answer(
    partner: Partner,
    localIndex: number,
  ): { readonly message: Buffer; readonly keys: SessionKeys } | null {
    const message = at.blank(at.RESPONSE);
    const transcript = this.#transcript;
    const ephemeral = generatePair();
    const ofEphemerals = agree(ephemeral, this.#message.subarray(at.EPHEMERAL_AT, at.STATIC_AT));
    const ofPartner = agree(ephemeral, partner.publicKey);
    if (ofEphemerals === null || ofPartner === null) return null;
    const remoteIndex = at.senderOf(this.#message);
    message.writeUInt32LE(localIndex, 4);
    message.writeUInt32LE(remoteIndex, 8);
    message.set(ephemeral.publicKey, at.ANSWER_EPHEMERAL_AT);
    transcript.ephemeral(ephemeral.publicKey);
    transcript.secret(ofEphemerals);
    transcript.secret(ofPartner);
    message.set(transcript.seal(transcript.preshared(partner.presharedKey), NOTHING), at.EMPTY_AT);
    const [receiving, sending] = transcript.split();
    return { message, keys: { sending, receiving, localIndex, remoteIndex, isInitiator: false } };
  }
}
