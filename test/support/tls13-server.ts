/** A server of TLS 1.3 without I/O, whose flight is a list that a test may change before it is sent. */
import { createHmac, createPrivateKey, generateKeyPairSync, randomBytes, X509Certificate } from "node:crypto";
import { encodeCertificate, encodeCertificateVerify } from "#transport/tls13/certificate-messages.ts";
import { cipherSuite } from "#transport/tls13/cipher-suites.ts";
import { EXTENSION } from "#transport/tls13/extensions.ts";
import { encodeMessage, MESSAGE } from "#transport/tls13/handshake-messages.ts";
import { encodeServerHello, readKeyShares, decodeClientHello } from "#transport/tls13/hello-messages.ts";
import { answerKeyShare, GROUP } from "#transport/tls13/key-exchange.ts";
import { finishedData, KeySchedule } from "#transport/tls13/key-schedule.ts";
import { plainRecord, RECORD, RecordOpener, RecordSealer } from "#transport/tls13/records.ts";
import { signTranscript } from "#transport/tls13/signatures.ts";
import { Transcript } from "#transport/tls13/transcript.ts";
import { typedVector16, u16, vector16 } from "#transport/tls13/wire.ts";
import type { TestCertificate } from "./certificate.ts";

const SUITE = cipherSuite(0x1301) as NonNullable<ReturnType<typeof cipherSuite>>;
export const FLIGHT = ["hello", "extensions", "certificate", "verify", "finished"] as const;
export type Part = (typeof FLIGHT)[number];

export interface Flight {
  readonly parts: Readonly<Record<Part, Buffer>>;
  /** Of the server's records behind its ServerHello, and behind its Finished. */
  readonly secrets: { readonly handshake: Buffer; readonly application: Buffer };
  /** Seals what is behind the ServerHello. */
  readonly handshake: RecordSealer;
  /** Seals payload. */
  readonly application: RecordSealer;
  /** Opens the client's payload, behind its Finished. */
  readonly ofClient: RecordOpener;
}

/** That a server goes on with a session, right or wrong. */
export interface Resumed {
  readonly secret: Buffer;
  /** Of the identities that were shown; only 0 is right. */
  readonly identity?: number;
  readonly withoutShare?: boolean;
}

/** The answer to a ClientHello, a whole message. */
export function answerHello(message: Buffer, { cert, key }: TestCertificate, resumed?: Resumed): Flight {
  const { extensions, sessionId } = decodeClientHello(message.subarray(4));
  const shares = readKeyShares(extensions.get(EXTENSION.keyShare) ?? Buffer.alloc(0));
  const answer = answerKeyShare(GROUP.x25519, shares.get(GROUP.x25519) ?? Buffer.alloc(0));
  if (answer === null) throw new Error("no share");
  const hello = encodeServerHello({
    random: randomBytes(32),
    sessionId,
    suite: SUITE.id,
    extensions: new Map([
      [EXTENSION.supportedVersions, u16(0x0304)],
      ...(resumed === undefined ? [] : ([[EXTENSION.preSharedKey, u16(resumed.identity ?? 0)]] as const)),
      ...(resumed?.withoutShare === true
        ? []
        : ([[EXTENSION.keyShare, typedVector16(GROUP.x25519, answer.share)]] as const)),
    ]),
  });
  const transcript = new Transcript();
  transcript.add(message);
  transcript.choose(SUITE);
  const add = (part: Buffer): Buffer => {
    transcript.add(part);
    return part;
  };
  /** In the flight, and not in the transcript, where it has no place. */
  const addUnlessResumed = (make: () => Buffer): Buffer => (resumed === undefined ? add(make()) : make());
  add(hello);
  const schedule = new KeySchedule(SUITE, resumed?.secret);
  const secrets = schedule.handshakeSecrets(answer.secret, transcript.digest());
  const parts = {
    hello,
    extensions: add(encodeMessage(MESSAGE.encryptedExtensions, vector16())),
    certificate: addUnlessResumed(() => encodeCertificate(Buffer.alloc(0), [new X509Certificate(cert).raw])),
    verify: addUnlessResumed(() => verifyOf(createPrivateKey(key), transcript.digest())),
    finished: add(encodeMessage(MESSAGE.finished, finishedData(SUITE, secrets.server, transcript.digest()))),
  };
  const application = schedule.applicationSecrets(transcript.digest());
  return {
    parts,
    secrets: { handshake: secrets.server, application: application.server },
    handshake: new RecordSealer(SUITE, secrets.server),
    application: new RecordSealer(SUITE, application.server),
    ofClient: new RecordOpener(SUITE, application.client),
  };
}

function verifyOf(key: ReturnType<typeof createPrivateKey>, digest: Buffer): Buffer {
  const signed = signTranscript(key, [0x0403, 0x0807], "server", digest);
  if (signed === null) throw new Error("a key of another kind");
  return encodeCertificateVerify(signed);
}

/** A sealer that has sealed nothing yet, by one of the secrets of a flight. */
export function sealerOf(secret: Buffer): RecordSealer {
  return new RecordSealer(SUITE, secret);
}

/** One record a message; the first is open. */
export function sealFlight({ parts, handshake }: Flight, order: readonly Part[] = FLIGHT): Buffer {
  return Buffer.concat(
    order.map((part, at) =>
      at === 0 && part === "hello"
        ? plainRecord(RECORD.handshake, parts[part])
        : handshake.seal(RECORD.handshake, parts[part]),
    ),
  );
}

const tlv = (tag: number, ...inner: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(inner);
  return Buffer.concat([
    Buffer.of(tag),
    body.length < 128 ? Buffer.of(body.length) : Buffer.of(0x81, body.length),
    body,
  ]);
};

/** A certificate as a REALITY server makes it: Ed25519, empty names, and the HMAC of its key as the signature. */
export function realityCertificate(authKey: Buffer): TestCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const spki = publicKey.export({ type: "spki", format: "der" });
  const algorithm = Buffer.from("300506032b6570", "hex");
  const time = tlv(0x17, Buffer.from("700101000000Z"));
  const version = Buffer.from("a003020102", "hex");
  const body = tlv(
    0x30,
    version,
    tlv(2, Buffer.of(0)),
    algorithm,
    tlv(0x30),
    tlv(0x30, time, time),
    tlv(0x30),
    spki,
  );
  const proof = createHmac("sha512", authKey).update(spki.subarray(-32)).digest();
  const der = tlv(0x30, body, algorithm, tlv(3, Buffer.of(0), proof));
  const cert = `-----BEGIN CERTIFICATE-----\n${der.toString("base64")}\n-----END CERTIFICATE-----\n`;
  const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  return { cert, key, fingerprint: "", privateKey, subject: "" };
}
