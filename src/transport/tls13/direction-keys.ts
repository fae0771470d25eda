/** What one direction of records is protected with, apart from the cipher itself (RFC 8446 §5.3, §7.3). */
import type { CipherSuite } from "./cipher-suites.ts";
import { nextSecret, trafficKeys } from "./key-schedule.ts";

export class DirectionKeys {
  readonly suite: CipherSuite;
  #secret: Uint8Array;
  #key: Buffer;
  #iv: Buffer;
  /** Records so far with this key. */
  #sequence: number;
  readonly #nonce = Buffer.alloc(12);

  /** `secret`: of application or handshake traffic. `sequence`: records that were sealed or opened with it already. */
  constructor(suite: CipherSuite, secret: Uint8Array, sequence = 0) {
    this.suite = suite;
    this.#secret = secret;
    const { key, iv } = trafficKeys(suite, secret);
    this.#key = key;
    this.#iv = iv;
    this.#sequence = sequence;
  }

  get secret(): Uint8Array {
    return this.#secret;
  }

  get key(): Buffer {
    return this.#key;
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** The key should be changed now. */
  get isWorn(): boolean {
    return this.#sequence >= this.suite.mostRecords;
  }

  /** Of the next record: the IV, xor its number in the last eight bytes. The same buffer each time. */
  nextNonce(): Buffer {
    const nonce = this.#nonce;
    nonce.set(this.#iv);
    const [high, low] = [Math.floor(this.#sequence / 2 ** 32), this.#sequence % 2 ** 32];
    nonce.writeUInt32BE((nonce.readUInt32BE(4) ^ high) >>> 0, 4);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ low) >>> 0, 8);
    this.#sequence++;
    return nonce;
  }

  /** The last nonce was that of a record which is to be opened once more. */
  stepBack(): void {
    this.#sequence--;
  }

  /** What follows a KeyUpdate (RFC 8446 §7.2). */
  update(): void {
    this.#secret = nextSecret(this.suite, this.#secret);
    const { key, iv } = trafficKeys(this.suite, this.#secret);
    this.#key = key;
    this.#iv = iv;
    this.#sequence = 0;
  }
}
