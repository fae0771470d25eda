/**
 * The dialling side's handshake of TLS 1.3 (RFC 8446 §2, §4) without records: whole messages in, messages and secrets
 * out. Records, or the packets of QUIC, are its owner's.
 */
import { type KeyObject, timingSafeEqual } from "node:crypto";
import { TlsFault } from "./alerts.ts";
import {
  type CertificateRequest,
  decodeCertificate,
  decodeCertificateRequest,
  decodeCertificateVerify,
  decompressCertificate,
  encodeCertificate,
  encodeCertificateVerify,
} from "./certificate-messages.ts";
import type { CipherSuite } from "./cipher-suites.ts";
import { EchAttempt } from "./ech/attempt.ts";
import { encodeExtension, EXTENSION } from "./extensions.ts";
import type { HandshakeOutput } from "./handshake.ts";
import { encodeMessage, type HandshakeMessage, MESSAGE } from "./handshake-messages.ts";
import { finishedData, KeySchedule, type StageSecrets } from "./key-schedule.ts";
import { type ClientHelloMessage, type Offer, readOffer, type Retry } from "./offered-hello.ts";
import { type Agreement, readEncryptedExtensions } from "./encrypted-extensions.ts";
import type { Ticket } from "./post-handshake.ts";
import { bindHello, resumedSession } from "./pre-shared-key.ts";
import { answerRetry, chooseSuite, readServerHello, sharedSecret } from "./server-choice.ts";
import type { Session, Sessions } from "./sessions.ts";
import { checkSignature, signTranscript } from "./signatures.ts";
import { Transcript } from "./transcript.ts";
import { vector16 } from "./wire.ts";

/** Shown where the server asks for a certificate. */
export interface ClientIdentity {
  /** DER, the own certificate first. */
  readonly chain: readonly Buffer[];
  readonly key: KeyObject;
}

/** What the server showed, and both hellos, for those who judge it. */
export interface ShownChain {
  /** DER, the server's own certificate first; at least one. */
  readonly chain: readonly Buffer[];
  /** The last ClientHello and the ServerHello, whole messages. */
  readonly clientHello: Buffer;
  readonly serverHello: Buffer;
  /** The server did not take the hidden hello: it must be who the hello around it names, and gets no payload. */
  readonly isEchRejected: boolean;
}

export interface ClientHandshakeOptions {
  readonly hello: ClientHelloMessage;
  readonly identity: ClientIdentity | null;
  /** The key of the server's certificate. Throws `TlsFault` with the alert that says why the server is refused. */
  judge(shown: ShownChain): KeyObject;
  /** Where sessions are kept that the server offers to resume; absent: nowhere. */
  readonly sessions?: Sessions;
}

type Step =
  | "server hello"
  | "encrypted extensions"
  | "certificate or request"
  | "certificate"
  | "certificate verify"
  | "finished"
  | "done";

export class ClientHandshake implements Disposable {
  readonly #options: ClientHandshakeOptions;
  readonly #output: HandshakeOutput;
  #transcript = new Transcript();
  #step: Step = "server hello";
  #hello: ClientHelloMessage;
  #offer: Offer;
  /** Null: nothing is hidden in the hello. */
  readonly #ech: EchAttempt | null;
  /** Of a HelloRetryRequest. */
  #retriedSuite: CipherSuite | null = null;
  #serverHello: Buffer | null = null;
  #keys: { suite: CipherSuite; schedule: KeySchedule; secrets: StageSecrets } | null = null;
  #request: CertificateRequest | null = null;
  /** What the server is judged by: shown now, or when the session began. */
  #chain: readonly Buffer[] = [];
  #session: Session | null = null;
  /** The master secret for tickets. */
  #resumption: Buffer | null = null;
  /** Of the server's certificate. */
  #serverKey: KeyObject | null = null;
  #agreement: Agreement | null = null;

  constructor(options: ClientHandshakeOptions, output: HandshakeOutput) {
    this.#options = options;
    this.#output = output;
    this.#hello = options.hello;
    this.#offer = readOffer(options.hello.message);
    const { hidden } = options.hello;
    this.#ech = hidden === undefined ? null : new EchAttempt(hidden);
  }

  get isDone(): boolean {
    return this.#step === "done";
  }

  /** What the server chose; null before its EncryptedExtensions. */
  get agreement(): Agreement | null {
    return this.#agreement;
  }

  /** The suite of the connection; null before the ServerHello. */
  get suite(): CipherSuite | null {
    return this.#keys?.suite ?? null;
  }

  start(): void {
    this.#sayHello(null);
  }

  /** `retried`: what went before, where the server asked for another hello. */
  #sayHello(retried: Transcript | null): void {
    const { message, session } = this.#hello;
    if (session !== undefined) bindHello(message, session, retried);
    this.#say(message);
  }

  /** The next message of the server. Throws `TlsFault`; the handshake is over then. */
  take(message: HandshakeMessage): void {
    const { type } = message;
    if (this.#step === "server hello" && type === MESSAGE.serverHello) return this.#takeServerHello(message);
    if (this.#step === "encrypted extensions" && type === MESSAGE.encryptedExtensions)
      return this.#takeExtensions(message);
    if (this.#step === "certificate or request" && type === MESSAGE.certificateRequest)
      return this.#takeRequest(message);
    if (this.#step === "certificate or request" || this.#step === "certificate") {
      if (type === MESSAGE.certificate) return this.#takeCertificate(message, message.body);
      if (type === MESSAGE.compressedCertificate)
        return this.#takeCertificate(message, decompressCertificate(message.body, this.#offer.compressions));
    }
    if (this.#step === "certificate verify" && type === MESSAGE.certificateVerify)
      return this.#takeVerify(message);
    if (this.#step === "finished" && type === MESSAGE.finished) return this.#takeFinished(message);
    throw new TlsFault("unexpected_message", `handshake message ${type} while waiting for ${this.#step}`);
  }

  #say(message: Buffer): void {
    this.#transcript.add(message);
    this.#output.send(message);
  }

  #takeServerHello({ body, whole }: HandshakeMessage): void {
    const answer = readServerHello(body, this.#offer);
    const suite = chooseSuite(answer, this.#offer, this.#retriedSuite);
    if (answer.isRetry) {
      if (this.#retriedSuite !== null) throw new TlsFault("unexpected_message", "a second HelloRetryRequest");
      this.#retriedSuite = suite;
      const dropsSession = this.#hello.session?.suite.hash !== suite.hash;
      return this.#retry(whole, suite, { ...answerRetry(answer, this.#offer), dropsSession });
    }
    this.#chooseHello(whole, suite);
    this.#session = resumedSession(answer, suite, this.#hello.session ?? null);
    const shared = sharedSecret(answer, this.#hello.shares);
    this[Symbol.dispose]();
    this.#transcript.add(whole);
    this.#serverHello = whole;
    const schedule = new KeySchedule(suite, this.#session?.secret);
    const secrets = schedule.handshakeSecrets(shared, this.#transcript.digest());
    this.#keys = { suite, schedule, secrets };
    this.#output.openWith(suite, secrets.server);
    this.#output.sealWith(suite, secrets.client);
    this.#step = "encrypted extensions";
  }

  #retry(whole: Buffer, suite: CipherSuite, retry: Retry): void {
    const hello = this.#hello;
    this.#hello = this.#ech === null ? hello.again(retry) : this.#ech.retry(whole, suite, hello, retry);
    for (const share of hello.shares) if (!this.#hello.shares.includes(share)) share[Symbol.dispose]();
    this.#offer = readOffer(this.#hello.message);
    this.#transcript.restart(suite);
    this.#transcript.add(whole);
    this.#sayHello(this.#transcript);
  }

  /** From here on the handshake is that of the hello that the server answers. */
  #chooseHello(whole: Buffer, suite: CipherSuite): void {
    if (this.#ech?.settle(whole, suite) === true) {
      this.#transcript = this.#ech.transcript;
      this.#offer = readOffer(this.#ech.message);
    } else if (this.#retriedSuite === null) this.#transcript.choose(suite);
  }

  #takeExtensions({ body, whole }: HandshakeMessage): void {
    this.#agreement = readEncryptedExtensions(body, this.#offer);
    this.#ech?.takeExtension(this.#agreement.extensions.get(EXTENSION.encryptedClientHello));
    this.#transcript.add(whole);
    if (this.#session === null) this.#step = "certificate or request";
    else {
      this.#judge(this.#session.chain);
      this.#step = "finished";
    }
  }

  #judge(chain: readonly Buffer[]): void {
    const serverHello = this.#serverHello ?? Buffer.alloc(0);
    const isEchRejected = this.#ech?.isRejected === true;
    this.#chain = chain;
    this.#serverKey = this.#options.judge({
      chain,
      clientHello: this.#hello.message,
      serverHello,
      isEchRejected,
    });
  }

  #takeRequest({ body, whole }: HandshakeMessage): void {
    this.#request = decodeCertificateRequest(body);
    this.#transcript.add(whole);
    this.#step = "certificate";
  }

  #takeCertificate({ whole }: HandshakeMessage, body: Buffer): void {
    const chain = decodeCertificate(body, this.#offer.extensions);
    if (chain.length === 0) throw new TlsFault("decode_error", "the server showed no certificate");
    // A session keeps the chain; it is not to keep all that came with it.
    this.#judge(this.#options.sessions === undefined ? chain : chain.map((der) => Buffer.from(der)));
    this.#transcript.add(whole);
    this.#step = "certificate verify";
  }

  #takeVerify({ body, whole }: HandshakeMessage): void {
    if (this.#serverKey === null) throw new Error("there is no certificate yet");
    checkSignature(decodeCertificateVerify(body), this.#serverKey, "server", this.#transcript.digest());
    this.#transcript.add(whole);
    this.#step = "finished";
  }

  #takeFinished({ body, whole }: HandshakeMessage): void {
    const { suite, schedule, secrets } = this.#known();
    const expected = finishedData(suite, secrets.server, this.#transcript.digest());
    if (body.length !== expected.length) throw new TlsFault("decode_error", "Finished: wrong length");
    if (!timingSafeEqual(body, expected)) throw new TlsFault("decrypt_error", "Finished does not fit");
    this.#transcript.add(whole);
    const application = schedule.applicationSecrets(this.#transcript.digest());
    this.#output.openWith(suite, application.server);
    this.#sendFlight(suite, secrets.client);
    this.#output.sealWith(suite, application.client, this.#agreement?.mostContent);
    const rejection = this.#ech?.rejection ?? null;
    if (rejection !== null) throw rejection;
    if (this.#options.sessions !== undefined)
      this.#resumption = schedule.resumptionSecret(this.#transcript.digest());
    this.#transcript.forget();
    this.#step = "done";
  }

  takeTicket(ticket: Ticket): void {
    this.ticketKeeper(ticket);
  }

  /** It keeps no more than it needs. */
  get ticketKeeper(): (ticket: Ticket) => void {
    const { suite } = this.#known();
    const { sessions } = this.#options;
    if (this.#resumption === null || sessions === undefined) return () => {};
    const origin = { suite, resumption: this.#resumption, chain: this.#chain };
    return (ticket) => sessions.keep(ticket, origin);
  }

  /** Our last messages, in the order of RFC 8446 §2 and of the ALPS draft. */
  #sendFlight(suite: CipherSuite, secret: Buffer): void {
    const flight: Buffer[] = [];
    const add = (message: Buffer): void => {
      this.#transcript.add(message);
      flight.push(message);
    };
    const settings = this.#agreement?.applicationSettings ?? null;
    if (settings !== null)
      add(encodeMessage(MESSAGE.encryptedExtensions, vector16(encodeExtension(settings))));
    if (this.#request !== null) this.#addCertificate(this.#request, add);
    add(encodeMessage(MESSAGE.finished, finishedData(suite, secret, this.#transcript.digest())));
    this.#output.send(Buffer.concat(flight));
  }

  /** An empty one where there is none, or none that the server takes: it decides what that means. */
  #addCertificate({ context, schemes }: CertificateRequest, add: (message: Buffer) => void): void {
    const identity = this.#ech?.isRejected === true ? null : this.#options.identity;
    const fits = identity !== null && signTranscript(identity.key, schemes, "client", context) !== null;
    add(encodeCertificate(context, fits ? identity.chain : []));
    if (!fits) return;
    const signed = signTranscript(identity.key, schemes, "client", this.#transcript.digest());
    if (signed !== null) add(encodeCertificateVerify(signed));
  }

  /** Frees the private keys of the hello; nothing more is to be said that needs them. */
  [Symbol.dispose](): void {
    for (const share of this.#hello.shares) share[Symbol.dispose]();
  }

  #known() {
    if (this.#keys === null) throw new Error("there are no keys yet");
    return this.#keys;
  }
}
