import { digest } from "#platform/hmac.ts";
import type { CipherSuite } from "./cipher-suites.ts";
import { vector24 } from "./wire.ts";

/** The message that stands for the first ClientHello behind a HelloRetryRequest (RFC 8446 §4.4.1). */
const MESSAGE_HASH = 254;

/**
 * The hash of all handshake messages (RFC 8446 §4.4.1). It is asked for half a dozen times and messages are few and short, so it is made
 * anew each time: that costs less than a hash object that goes on, and its copies.
 */
export class Transcript {
  #messages: Buffer[] = [];
  #suite: CipherSuite | null = null;

  /** A whole message with its header of four bytes. */
  add(message: Buffer): void {
    this.#messages.push(Buffer.from(message));
  }

  /** To be called once, when the cipher suite is known. */
  choose(suite: CipherSuite): void {
    this.#suite = suite;
  }

  /** Replaces what was added so far, the first ClientHello, by its hash. To be called before the HelloRetryRequest is added. */
  restart(suite: CipherSuite): void {
    const first = digest(suite.hash, this.#messages);
    this.#messages = [Buffer.concat([Buffer.of(MESSAGE_HASH), vector24(first)])];
    this.choose(suite);
  }

  /** Of everything so far, and of `further` as if it had been added. */
  digest(further?: Buffer): Buffer {
    if (this.#suite === null) throw new Error("the transcript has no hash yet");
    return digest(this.#suite.hash, further === undefined ? this.#messages : [...this.#messages, further]);
  }

  /** The handshake is done: its messages are not to be kept for as long as the connection. */
  forget(): void {
    this.#messages = [];
    this.#suite = null;
  }
}
