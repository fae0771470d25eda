/** The dialling side's view of both hellos, until the server shows which of them it answers (RFC 9849 §6.1.4). */
import type { CipherSuite } from "#transport/tls13/cipher-suites.ts";
import type { ClientHelloMessage, HiddenHello, Retry } from "#transport/tls13/offered-hello.ts";
import { TlsFault } from "#transport/tls13/alerts.ts";
import { Transcript } from "#transport/tls13/transcript.ts";
import { readEchConfigs } from "./config.ts";
import { isConfirmed } from "./confirmation.ts";

/** The server did not take the hidden hello, and proved to be the one that its configuration names. */
export class EchRejected extends TlsFault {
  /** What the server says it takes: an ECHConfigList; null: it does not do Encrypted ClientHello any more. */
  readonly retryConfigs: Buffer | null;

  constructor(retryConfigs: Buffer | null) {
    const what = retryConfigs === null ? "and has none that it would take" : "and says which one it takes";
    super("ech_required", `the server did not take the Encrypted ClientHello, ${what}`);
    this.retryConfigs = retryConfigs;
  }
}

export class EchAttempt {
  /** Of the hidden hello, and all messages behind it. */
  readonly transcript = new Transcript();
  #hello: HiddenHello;
  #state: "open" | "accepted" | "rejected" = "open";
  #retriedSuite: CipherSuite | null = null;
  #retryConfigs: Buffer | null = null;

  constructor(hello: HiddenHello) {
    this.#hello = hello;
    this.transcript.add(hello.message);
  }

  get isRejected(): boolean {
    return this.#state === "rejected";
  }

  /** The hello that the server answers, where that is the hidden one. */
  get message(): Buffer {
    return this.#hello.message;
  }

  /** `message`: a HelloRetryRequest; `cover`: the hello that was sent. What is to be sent now. To be called once. */
  retry(message: Buffer, suite: CipherSuite, cover: ClientHelloMessage, retry: Retry): ClientHelloMessage {
    this.#retriedSuite = suite;
    this.transcript.restart(suite);
    const isAccepted = this.#isConfirmed(message, suite, true);
    this.transcript.add(message);
    const next = isAccepted ? this.#hello.again(retry) : cover.again(retry);
    if (next.hidden === undefined) this.#state = "rejected";
    else {
      this.#hello = next.hidden;
      this.transcript.add(next.hidden.message);
    }
    return next;
  }

  /** `message`: the ServerHello. True: the server answers the hidden hello. Throws `TlsFault`. */
  settle(message: Buffer, suite: CipherSuite): boolean {
    if (this.#state === "rejected") return false;
    if (this.#retriedSuite === null) this.transcript.choose(suite);
    const isAccepted = this.#isConfirmed(message, suite, false);
    // A server that has taken the first of two hidden hellos takes the second one, too (RFC 9849 §6.1.4).
    if (!isAccepted && this.#retriedSuite !== null)
      throw new TlsFault(
        "illegal_parameter",
        "the server took the first Encrypted ClientHello and not the second",
      );
    this.#state = isAccepted ? "accepted" : "rejected";
    return isAccepted;
  }

  /** `extension`: of EncryptedExtensions. Throws `TlsFault`. */
  takeExtension(extension: Buffer | undefined): void {
    if (extension === undefined) return;
    if (this.#state === "accepted")
      throw new TlsFault("unsupported_extension", "EncryptedExtensions: configurations where one was taken");
    this.#retryConfigs = readEchConfigs(extension).length === 0 ? null : Buffer.from(extension);
  }

  /** Behind the server's Finished: why no payload may be sent; null: it may. */
  get rejection(): EchRejected | null {
    return this.#state === "accepted" ? null : new EchRejected(this.#retryConfigs);
  }

  #isConfirmed(message: Buffer, suite: CipherSuite, isRetry: boolean): boolean {
    const { random } = this.#hello;
    return isConfirmed(message, { suite, random, transcript: this.transcript, isRetry });
  }
}
