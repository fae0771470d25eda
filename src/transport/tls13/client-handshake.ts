/**
 * The dialling side's handshake of TLS 1.3 (RFC 8446 §2, §4) without records: whole messages in, messages and secrets
 * out. Records, or the packets of QUIC, are its owner's.
 */
import { type KeyObject, timingSafeEqual, X509Certificate } from "node:crypto";
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
import { encodeExtension } from "./extensions.ts";
import { encodeMessage, type HandshakeMessage, MESSAGE } from "./handshake-messages.ts";
import { finishedData, KeySchedule, type StageSecrets } from "./key-schedule.ts";
import { type ClientHelloMessage, type Offer, readOffer } from "./offered-hello.ts";
import { type Agreement, readEncryptedExtensions } from "./encrypted-extensions.ts";
import { answerRetry, chooseSuite, readServerHello, sharedSecret } from "./server-choice.ts";
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
  readonly leaf: X509Certificate;
  /** The last ClientHello and the ServerHello, whole messages. */
  readonly clientHello: Buffer;
  readonly serverHello: Buffer;
}

export interface ClientHandshakeOptions {
  readonly hello: ClientHelloMessage;
  readonly identity: ClientIdentity | null;
  /** Throws `TlsFault` with the alert that says why the server is refused. */
  judge(shown: ShownChain): void;
}

/** Where messages and secrets go. Each secret is for everything behind the call. */
export interface HandshakeOutput {
  send(messages: Buffer): void;
  openWith(suite: CipherSuite, secret: Buffer): void;
  /** `mostContent`: of one record, where the peer has set a limit. */
  sealWith(suite: CipherSuite, secret: Buffer, mostContent?: number | null): void;
}

type Step =
  | "server hello"
  | "encrypted extensions"
  | "certificate or request"
  | "certificate"
  | "certificate verify"
  | "finished"
  | "done";

export class ClientHandshake {
  readonly #options: ClientHandshakeOptions;
  readonly #output: HandshakeOutput;
  readonly #transcript = new Transcript();
  #step: Step = "server hello";
  #hello: ClientHelloMessage;
  #offer: Offer;
  /** Of a HelloRetryRequest. */
  #retriedSuite: CipherSuite | null = null;
  #serverHello: Buffer | null = null;
  #keys: { suite: CipherSuite; schedule: KeySchedule; secrets: StageSecrets } | null = null;
  #request: CertificateRequest | null = null;
  #leaf: X509Certificate | null = null;
  #agreement: Agreement | null = null;

  constructor(options: ClientHandshakeOptions, output: HandshakeOutput) {
    this.#options = options;
    this.#output = output;
    this.#hello = options.hello;
    this.#offer = readOffer(options.hello.message);
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
    this.#say(this.#hello.message);
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
      this.#hello = this.#hello.again(answerRetry(answer, this.#offer));
      this.#offer = readOffer(this.#hello.message);
      this.#transcript.restart(suite);
      this.#transcript.add(whole);
      return this.#say(this.#hello.message);
    }
    const shared = sharedSecret(answer, this.#hello.shares);
    if (this.#retriedSuite === null) this.#transcript.choose(suite);
    this.#transcript.add(whole);
    this.#serverHello = whole;
    const schedule = new KeySchedule(suite);
    const secrets = schedule.handshakeSecrets(shared, this.#transcript.digest());
    this.#keys = { suite, schedule, secrets };
    this.#output.openWith(suite, secrets.server);
    this.#output.sealWith(suite, secrets.client);
    this.#step = "encrypted extensions";
  }

  #takeExtensions({ body, whole }: HandshakeMessage): void {
    this.#agreement = readEncryptedExtensions(body, this.#offer);
    this.#transcript.add(whole);
    this.#step = "certificate or request";
  }

  #takeRequest({ body, whole }: HandshakeMessage): void {
    this.#request = decodeCertificateRequest(body);
    this.#transcript.add(whole);
    this.#step = "certificate";
  }

  #takeCertificate({ whole }: HandshakeMessage, body: Buffer): void {
    const chain = decodeCertificate(body, Buffer.alloc(0));
    const [first] = chain;
    if (first === undefined) throw new TlsFault("decode_error", "the server showed no certificate");
    this.#leaf = parseLeaf(first);
    const clientHello = this.#hello.message;
    const serverHello = this.#serverHello ?? Buffer.alloc(0);
    this.#options.judge({ chain, leaf: this.#leaf, clientHello, serverHello });
    this.#transcript.add(whole);
    this.#step = "certificate verify";
  }

  #takeVerify({ body, whole }: HandshakeMessage): void {
    const signed = decodeCertificateVerify(body);
    checkSignature(signed, publicKeyOf(this.#leaf), "server", this.#transcript.digest());
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
    this.#step = "done";
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
    const { identity } = this.#options;
    const fits = identity !== null && signTranscript(identity.key, schemes, "client", context) !== null;
    add(encodeCertificate(context, fits ? identity.chain : []));
    if (!fits) return;
    const signed = signTranscript(identity.key, schemes, "client", this.#transcript.digest());
    if (signed !== null) add(encodeCertificateVerify(signed));
  }

  #known() {
    if (this.#keys === null) throw new Error("there are no keys yet");
    return this.#keys;
  }
}

function parseLeaf(der: Buffer): X509Certificate {
  try {
    return new X509Certificate(der);
  } catch (cause) {
    throw new TlsFault("bad_certificate", "a certificate that cannot be read", { cause });
  }
}

function publicKeyOf(leaf: X509Certificate | null): KeyObject {
  try {
    if (leaf !== null) return leaf.publicKey;
  } catch (cause) {
    throw new TlsFault("unsupported_certificate", "a public key that cannot be read", { cause });
  }
  throw new TlsFault("unexpected_message", "CertificateVerify without a certificate");
}
