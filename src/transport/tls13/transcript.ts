import { createHash, type Hash } from "node:crypto";
import type { CipherSuite } from "./cipher-suites.ts";
import { vector24 } from "./wire.ts";

/** The message that stands for the first ClientHello behind a HelloRetryRequest (RFC 8446 §4.4.1). */
const MESSAGE_HASH = 254;

/** The running hash of all handshake messages (RFC 8446 §4.4.1). Messages are kept until the hash is chosen. */
export class Transcript {
  #waiting: Buffer[] = [];
  #hash: Hash | null = null;

  /** A whole message with its header of four bytes. */
  add(message: Buffer): void {
    if (this.#hash === null) this.#waiting.push(Buffer.from(message));
    else this.#hash.update(message);
  }

  /** To be called once, when the cipher suite is known. */
  choose({ hash }: CipherSuite): void {
    this.#hash = createHash(hash);
    for (const message of this.#waiting) this.#hash.update(message);
    this.#waiting = [];
  }

  /** Replaces what was added so far, the first ClientHello, by its hash. To be called before the HelloRetryRequest is added. */
  restart(suite: CipherSuite): void {
    const first = createHash(suite.hash);
    for (const message of this.#waiting) first.update(message);
    this.#waiting = [Buffer.concat([Buffer.of(MESSAGE_HASH), vector24(first.digest())])];
    this.choose(suite);
  }

  /** Of everything so far, and of `further` as if it had been added. */
  digest(further?: Buffer): Buffer {
    if (this.#hash === null) throw new Error("the transcript has no hash yet");
    const hash = this.#hash.copy();
    if (further !== undefined) hash.update(further);
    return hash.digest();
  }
}
