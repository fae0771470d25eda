/** What one direction of records is protected with, apart from the cipher itself (RFC 8446 §5.3, §7.3). */
import type { CipherSuite } from "./cipher-suites.ts";
import { nextSecret, trafficIv, trafficKey } from "./key-schedule.ts";

export class DirectionKeys {
  readonly suite: CipherSuite;
  #secret: Uint8Array;
  /** Null: it was not asked for yet. */
  #key: Buffer | null = null;
  /** The IV, and of the last record xor its number in the last eight bytes. */
  #nonce: Buffer;
  #ivHigh: number;
  #ivLow: number;
  /** Records so far with this key. */
  #sequence: number;

  /** `secret`: of application or handshake traffic. `sequence`: records that were sealed or opened with it already. */
  constructor(suite: CipherSuite, secret: Uint8Array, sequence = 0) {
    this.suite = suite;
    this.#secret = secret;
    this.#nonce = Buffer.from(trafficIv(suite, secret));
    [this.#ivHigh, this.#ivLow] = [this.#nonce.readInt32BE(4), this.#nonce.readInt32BE(8)];
    this.#sequence = sequence;
  }

  get secret(): Uint8Array {
    return this.#secret;
  }

  /** Made when it is first asked for: who goes on with another one's context needs none. */
  get key(): Buffer {
    return (this.#key ??= trafficKey(this.suite, this.#secret));
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** The key should be changed now. */
  get isWorn(): boolean {
    return this.#sequence >= this.suite.mostRecords;
  }

  /** Of the next record. The same buffer each time. */
  nextNonce(): Buffer {
    writeWord(this.#nonce, 4, this.#ivHigh ^ Math.floor(this.#sequence / 2 ** 32));
    writeWord(this.#nonce, 8, this.#ivLow ^ this.#sequence); // of which it takes 32 bits
    this.#sequence++;
    return this.#nonce;
  }

  /** The last nonce was that of a record which is to be opened once more. */
  stepBack(): void {
    this.#sequence--;
  }

  /** What follows a KeyUpdate (RFC 8446 §7.2). */
  update(): void {
    this.#secret = nextSecret(this.suite, this.#secret);
    this.#key = null;
    this.#nonce = Buffer.from(trafficIv(this.suite, this.#secret));
    [this.#ivHigh, this.#ivLow] = [this.#nonce.readInt32BE(4), this.#nonce.readInt32BE(8)];
    this.#sequence = 0;
  }
}

/** The lower 32 bits of a number, big endian. */
function writeWord(out: Uint8Array, at: number, value: number): void {
  out[at] = value >>> 24;
  out[at + 1] = value >>> 16;
  out[at + 2] = value >>> 8;
  out[at + 3] = value;
}
