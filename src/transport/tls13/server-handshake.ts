/**
 * The accepting side's handshake of TLS 1.3 (RFC 8446 §2, §4) by a certificate, with Encrypted ClientHello (RFC 9849 §7).
 * No tickets, no client certificates, no early data.
 */
import { type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import { TlsFault } from "./alerts.ts";
import { encodeCertificate, encodeCertificateVerify } from "./certificate-messages.ts";
import type { CipherSuite } from "./cipher-suites.ts";
import type { ConnectionOutput, Handshake } from "./handshake.ts";
import { EchAcceptor } from "./ech/accept.ts";
import { confirmationIn, CONFIRMATION_BYTES, makeConfirmation } from "./ech/confirmation.ts";
import type { EchKey } from "./ech/keys.ts";
import { encodeExtensions, encodeProtocols, EXTENSION } from "./extensions.ts";
import { encodeMessage, type HandshakeMessage, MESSAGE } from "./handshake-messages.ts";
import { chooseFromHello, type HelloChoice } from "./hello-choice.ts";
import {
  type ClientHello,
  decodeClientHello,
  encodeServerHello,
  RETRY_RANDOM,
  TLS_1_3,
} from "./hello-messages.ts";
import { answerKeyShare } from "./key-exchange.ts";
import { finishedData, KeySchedule, type StageSecrets } from "./key-schedule.ts";
import { plainRecord, RECORD } from "./records.ts";
import { signTranscript } from "./signatures.ts";
import { Transcript } from "./transcript.ts";
import { u16, vector16 } from "./wire.ts";

const NOTHING = Buffer.alloc(0);
const RANDOM_BYTES = 32;
const CHANGE_CIPHER_SPEC = plainRecord(RECORD.changeCipherSpec, Buffer.of(1));

/** What the server shows. */
export interface ServerIdentity {
  /** DER, the own certificate first. */
  readonly chain: readonly Buffer[];
  readonly key: KeyObject;
}

export interface ServerHandshakeOptions {
  readonly identity: ServerIdentity;
  /** ALPN, the preferred one first; empty: the extension is not answered. */
  readonly protocols: readonly string[];
  readonly echKeys: readonly EchKey[];
  /** For clients that have sealed for another key: an ECHConfigList. */
  readonly retryConfigs: Buffer;
}

/** A hello that counts: the hidden one, or that which everybody sees. */
interface Heard {
  readonly message: Buffer;
  readonly hello: ClientHello;
  readonly choice: HelloChoice;
}

export class ServerHandshake implements Handshake {
  /** Of workers that relay records only those that were dialled are known to go on well. */
  readonly suite = null;
  readonly #options: ServerHandshakeOptions;
  readonly #output: ConnectionOutput;
  readonly #ech: EchAcceptor;
  readonly #transcript = new Transcript();
  #step: "hello" | "second hello" | "finished" | "done" = "hello";
  #isHidden = false;
  /** What a HelloRetryRequest has settled. */
  #asked: HelloChoice | null = null;
  #choice: HelloChoice | null = null;
  #end: { suite: CipherSuite; application: StageSecrets; clientFinished: Buffer } | null = null;

  constructor(options: ServerHandshakeOptions, output: ConnectionOutput) {
    this.#options = options;
    this.#output = output;
    this.#ech = new EchAcceptor(options.echKeys);
  }

  get isDone(): boolean {
    return this.#step === "done";
  }

  /** What of the client's hello was taken; null before that. */
  get choice(): HelloChoice | null {
    return this.#choice;
  }

  /** The client's name for the server was hidden. */
  get isHidden(): boolean {
    return this.#isHidden;
  }

  /** The client begins. */
  start(): void {}

  /** The next message of the client. Throws `TlsFault`; the handshake is over then. */
  take(message: HandshakeMessage): void {
    const { type } = message;
    if (this.#step === "hello" && type === MESSAGE.clientHello) return this.#takeHello(message.whole);
    if (this.#step === "second hello" && type === MESSAGE.clientHello)
      return this.#takeSecondHello(message.whole);
    if (this.#step === "finished" && type === MESSAGE.finished) return this.#takeFinished(message.body);
    throw new TlsFault("unexpected_message", `handshake message ${type} while waiting for ${this.#step}`);
  }

  #takeHello(whole: Buffer): void {
    const hidden = this.#ech.open(whole);
    this.#isHidden = hidden !== null;
    const heard = this.#read(hidden ?? whole);
    const { share, suite } = heard.choice;
    this.#transcript.add(heard.message);
    if (share === null) return this.#askAgain(heard);
    this.#transcript.choose(suite);
    this.#answer(heard, share);
  }

  #takeSecondHello(whole: Buffer): void {
    const heard = this.#read(this.#isHidden ? this.#ech.openAgain(whole) : whole);
    const { share, suite, group } = heard.choice;
    if (share === null || suite !== this.#asked?.suite || group !== this.#asked.group)
      throw new TlsFault("illegal_parameter", "a second ClientHello without what it was asked for");
    this.#transcript.add(heard.message);
    this.#answer(heard, share);
  }

  #read(message: Buffer): Heard {
    const hello = decodeClientHello(message.subarray(4));
    return { message, hello, choice: chooseFromHello(hello, this.#options.protocols) };
  }

  #askAgain({ hello, choice }: Heard): void {
    const { suite, group } = choice;
    this.#asked = choice;
    this.#transcript.restart(suite);
    const extensions = new Map<number, Buffer>([
      [EXTENSION.supportedVersions, u16(TLS_1_3)],
      [EXTENSION.keyShare, u16(group)],
    ]);
    if (this.#isHidden) extensions.set(EXTENSION.encryptedClientHello, Buffer.alloc(CONFIRMATION_BYTES));
    const fields = { random: RETRY_RANDOM, sessionId: hello.sessionId, suite: suite.id, extensions };
    this.#sayOpenly(encodeServerHello(fields), hello, suite, true);
    this.#step = "second hello";
  }

  /** With the proof that the hidden hello is answered, where it is. */
  #sayOpenly(message: Buffer, { random }: ClientHello, suite: CipherSuite, isRetry: boolean): void {
    if (this.#isHidden) {
      const confirmed = { suite, random, transcript: this.#transcript, isRetry };
      confirmationIn(message, isRetry)?.set(makeConfirmation(message, confirmed));
    }
    this.#transcript.add(message);
    this.#output.sendRecords(plainRecord(RECORD.handshake, message));
    if (isRetry || this.#asked === null) this.#output.sendRecords(CHANGE_CIPHER_SPEC); // RFC 8446 §D.4
  }

  #answer({ hello, choice }: Heard, share: Buffer): void {
    const { suite, group } = choice;
    const answer = answerKeyShare(group, share);
    if (answer === null) throw new TlsFault("handshake_failure", `the group ${group} is not built`);
    this.#choice = choice;
    const serverHello = encodeServerHello({
      random: randomBytes(RANDOM_BYTES),
      sessionId: hello.sessionId,
      suite: suite.id,
      extensions: new Map([
        [EXTENSION.supportedVersions, u16(TLS_1_3)],
        [EXTENSION.keyShare, Buffer.concat([u16(group), vector16(answer.share)])],
      ]),
    });
    this.#sayOpenly(serverHello, hello, suite, false);
    const schedule = new KeySchedule(suite);
    const secrets = schedule.handshakeSecrets(answer.secret, this.#transcript.digest());
    this.#output.sealWith(suite, secrets.server);
    this.#output.openWith(suite, secrets.client);
    this.#output.send(Buffer.concat(this.#flight(hello, choice, secrets)));
    const digest = this.#transcript.digest();
    const application = schedule.applicationSecrets(digest);
    this.#output.sealWith(suite, application.server);
    this.#end = { suite, application, clientFinished: finishedData(suite, secrets.client, digest) };
    this.#step = "finished";
  }

  /** EncryptedExtensions, Certificate, CertificateVerify, Finished. */
  #flight(hello: ClientHello, { suite, schemes, alpn }: HelloChoice, secrets: StageSecrets): Buffer[] {
    const { identity } = this.#options;
    const flight: Buffer[] = [];
    const add = (message: Buffer): void => {
      this.#transcript.add(message);
      flight.push(message);
    };
    add(encodeMessage(MESSAGE.encryptedExtensions, this.#extensions(hello, alpn)));
    add(encodeCertificate(NOTHING, identity.chain));
    const signed = signTranscript(identity.key, schemes, "server", this.#transcript.digest());
    if (signed === null) throw new TlsFault("handshake_failure", "no signature scheme that both sides have");
    add(encodeCertificateVerify(signed));
    add(encodeMessage(MESSAGE.finished, finishedData(suite, secrets.server, this.#transcript.digest())));
    return flight;
  }

  #extensions({ extensions }: ClientHello, alpn: string | null): Buffer {
    const said = new Map<number, Buffer>();
    if (alpn !== null) said.set(EXTENSION.alpn, encodeProtocols([alpn]));
    if (!this.#isHidden && extensions.has(EXTENSION.encryptedClientHello))
      said.set(EXTENSION.encryptedClientHello, this.#options.retryConfigs);
    return encodeExtensions(said);
  }

  #takeFinished(body: Buffer): void {
    if (this.#end === null) throw new Error("the handshake has no end yet");
    const { suite, application, clientFinished } = this.#end;
    if (body.length !== clientFinished.length) throw new TlsFault("decode_error", "Finished: wrong length");
    if (!timingSafeEqual(body, clientFinished)) throw new TlsFault("decrypt_error", "Finished does not fit");
    this.#output.openWith(suite, application.client);
    this.#transcript.forget();
    this.#step = "done";
  }
}
