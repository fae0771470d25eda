import { digest, runningDigest, type RunningDigest } from "#platform/hmac.ts";
import type { CipherSuite } from "./cipher-suites.ts";
import { vector24 } from "./wire.ts";

/** The message that stands for the first ClientHello behind a HelloRetryRequest (RFC 8446 §4.4.1). */
const MESSAGE_HASH = 254;

/** The hash of all handshake messages (RFC 8446 §4.4.1). */
export class Transcript {
  /** Those that came before the hash was known. */
  #messages: Buffer[] = [];
  #running: RunningDigest | null = null;

  /** A whole message with its header of four bytes. */
  add(message: Buffer): void {
    if (this.#running === null) this.#messages.push(Buffer.from(message));
    else this.#running.add(message);
  }

  /** To be called once, when the cipher suite is known. */
  choose(suite: CipherSuite): void {
    this.#running = runningDigest(suite.hash);
    for (const message of this.#messages.splice(0)) this.#running.add(message);
  }

  /** Replaces what was added so far, the first ClientHello, by its hash. To be called before the HelloRetryRequest is added. */
  restart(suite: CipherSuite): void {
    const first = digest(suite.hash, this.#messages);
    this.#messages = [Buffer.concat([Buffer.of(MESSAGE_HASH), vector24(first)])];
    this.choose(suite);
  }

  /** Of everything so far, and of `further` as if it had been added. */
  digest(further?: Buffer): Buffer {
    if (this.#running === null) throw new Error("the transcript has no hash yet");
    return this.#running.digest(further);
  }

  /** The handshake is done: nothing of it is to be kept for as long as the connection. */
  forget(): void {
    this.#messages = [];
    this.#running = null;
  }
}
