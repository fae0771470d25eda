/** The accepting side's handshake of REALITY: dest's ServerHello with a key share of our own, and a flight of dest's shape. */
import { timingSafeEqual } from "node:crypto";
import { TlsFault } from "#transport/tls13/alerts.ts";
import { encodeCertificate, encodeCertificateVerify } from "#transport/tls13/certificate-messages.ts";
import { cipherSuite, type CipherSuite } from "#transport/tls13/cipher-suites.ts";
import type { ConnectionOutput, Handshake } from "#transport/tls13/handshake.ts";
import { EXTENSION } from "#transport/tls13/extensions.ts";
import { encodeMessage, type HandshakeMessage, MESSAGE } from "#transport/tls13/handshake-messages.ts";
import { decodeServerHello, readServerShare, TLS_1_3 } from "#transport/tls13/hello-messages.ts";
import { answerKeyShare, GROUP, type KeyAnswer } from "#transport/tls13/key-exchange.ts";
import { finishedData, KeySchedule, type StageSecrets } from "#transport/tls13/key-schedule.ts";
import { plainRecord, RECORD, RecordSealer } from "#transport/tls13/records.ts";
import { ED25519_SCHEME, signTranscript } from "#transport/tls13/signatures.ts";
import { Transcript } from "#transport/tls13/transcript.ts";
import { vector16 } from "#transport/tls13/wire.ts";
import type { Admitted } from "./admission.ts";
import type { DestFlight } from "./dest-flight.ts";
import type { OwnCertificate } from "./own-certificate.ts";

const NOTHING = Buffer.alloc(0);
const CHANGE_CIPHER_SPEC = plainRecord(RECORD.changeCipherSpec, Buffer.of(1));

/** All that is sent and known before the client says more. */
export interface ShapedFlight {
  readonly suite: CipherSuite;
  /** Of the key exchange, as dest chose it. */
  readonly group: number;
  /** ServerHello, ChangeCipherSpec and protected records, as long as those of dest. */
  readonly records: Buffer;
  readonly handshake: StageSecrets;
  /** Asked for once, when the records are on their way: the client waits for them. */
  ending(): Ending;
}

/** How the handshake ends. */
interface Ending {
  readonly application: StageSecrets;
  /** What the client's Finished must hold. */
  readonly clientFinished: Buffer;
}

/** Our half of a key exchange, made before dest has chosen its group: visitors do not wait for it then. */
export interface PreparedShare {
  readonly group: number;
  readonly answer: KeyAnswer;
}

/** `group`: what dest chose for others. Null: the client has no such share, or one that cannot be used. */
export function prepareShare({ shares }: Admitted, group: number): PreparedShare | null {
  const client = shares.get(group);
  if (client === undefined) return null;
  try {
    const answer = answerKeyShare(group, client);
    return answer === null ? null : { group, answer };
  } catch {
    return null; // dest has the answer
  }
}

/**
 * Null: dest's flight is too short, or its ServerHello chooses what cannot be imitated. Throws `TlsFault` for shares that are
 * none. `prepared`: of this client; another group than dest's is of no use.
 */
export function shapeFlight(
  admitted: Admitted,
  dest: DestFlight,
  certificate: OwnCertificate,
  prepared: PreparedShare | null = null,
): ShapedFlight | null {
  const chosen = answerAs(dest.serverHello, admitted, prepared);
  if (chosen === null) return null;
  const { suite, group, serverHello, secret } = chosen;
  const transcript = new Transcript();
  transcript.add(admitted.hello);
  transcript.choose(suite);
  transcript.add(serverHello);
  const schedule = new KeySchedule(suite);
  const handshake = schedule.handshakeSecrets(secret, transcript.digest());
  const messages: Buffer[] = [];
  const add = (message: Buffer): void => {
    transcript.add(message);
    messages.push(message);
  };
  add(encodeMessage(MESSAGE.encryptedExtensions, vector16()));
  const der = certificate.issue(admitted.authKey, { clientHello: admitted.hello, serverHello });
  add(encodeCertificate(NOTHING, [der]));
  const signed = signTranscript(certificate.key, [ED25519_SCHEME], "server", transcript.digest());
  if (signed === null) throw new Error("the certificate's key is not Ed25519");
  add(encodeCertificateVerify(signed));
  add(encodeMessage(MESSAGE.finished, finishedData(suite, handshake.server, transcript.digest())));
  const sealed = sealAs(messages, dest.lengths, suite, handshake.server);
  if (sealed === null) return null;
  return {
    suite,
    group,
    records: Buffer.concat([plainRecord(RECORD.handshake, serverHello), CHANGE_CIPHER_SPEC, ...sealed]),
    handshake,
    ending() {
      const digest = transcript.digest();
      return {
        application: schedule.applicationSecrets(digest),
        clientFinished: finishedData(suite, handshake.client, digest),
      };
    },
  };
}

/** Dest's ServerHello, in which only the key share is our own. */
function answerAs(destHello: Buffer, { shares, sessionId }: Admitted, prepared: PreparedShare | null) {
  const serverHello = Buffer.from(destHello);
  const hello = decodeServerHello(serverHello.subarray(4));
  const suite = cipherSuite(hello.suite);
  const chosen = hello.extensions.get(EXTENSION.keyShare);
  if (hello.isRetry || hello.version !== TLS_1_3 || suite === null || chosen === undefined) return null;
  if (!hello.sessionId.equals(sessionId)) return null;
  const { group, share } = readServerShare(chosen);
  const client = shares.get(group);
  if ((group !== GROUP.x25519 && group !== GROUP.x25519MlKem768) || client === undefined) return null;
  const answer = prepared?.group === group ? prepared.answer : answerKeyShare(group, client);
  if (answer === null || answer.share.length !== share.length) return null;
  share.set(answer.share); // `share` lies in `serverHello`
  return { suite, group, serverHello, secret: answer.secret };
}

/** Null: a message does not fit into dest's record. */
function sealAs(
  messages: readonly Buffer[],
  lengths: readonly number[],
  suite: CipherSuite,
  secret: Buffer,
): readonly Buffer[] | null {
  using sealer = new RecordSealer(suite, secret);
  const contents = lengths.length === 1 ? [Buffer.concat(messages)] : messages;
  const records: Buffer[] = [];
  for (const [at, content] of contents.entries()) {
    const length = lengths[at] ?? 0;
    const record = sealer.seal(RECORD.handshake, content, length);
    if (record.length !== length) return null;
    records.push(record);
  }
  return records;
}

export class RealityHandshake implements Handshake {
  readonly #flight: ShapedFlight;
  readonly #output: ConnectionOutput;
  readonly #later: () => readonly number[];
  #ending: Ending | null = null;
  #isDone = false;

  /** The records of the flight are said by who has it. `later`: lengths of the records that dest sends once a client has finished; asked for then. */
  constructor(flight: ShapedFlight, later: () => readonly number[], output: ConnectionOutput) {
    this.#flight = flight;
    this.#later = later;
    this.#output = output;
  }

  get suite(): CipherSuite {
    return this.#flight.suite;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  start(): void {
    const { suite, handshake } = this.#flight;
    this.#ending = this.#flight.ending();
    this.#output.openWith(suite, handshake.client);
    this.#output.sealWith(suite, this.#ending.application.server);
  }

  /** A record without payload, as long as one of dest's that came before the client has finished. */
  imitate(recordBytes: number): void {
    this.#output.sendPadding(recordBytes);
  }

  take({ type, body }: HandshakeMessage): void {
    if (type !== MESSAGE.finished || this.#ending === null)
      throw new TlsFault("unexpected_message", `handshake message ${type} while waiting for Finished`);
    const { suite } = this.#flight;
    const { clientFinished, application } = this.#ending;
    if (body.length !== clientFinished.length) throw new TlsFault("decode_error", "Finished: wrong length");
    if (!timingSafeEqual(body, clientFinished)) throw new TlsFault("decrypt_error", "Finished does not fit");
    this.#output.openWith(suite, application.client);
    for (const length of this.#later()) this.#output.sendPadding(length);
    this.#isDone = true;
  }
}
