/** Messages of TLS 1.3, and a whole connection whose server says anything. */
import { X509Certificate } from "node:crypto";
import {
  decodeCertificate,
  decodeCertificateRequest,
  decodeCertificateVerify,
  decompressCertificate,
  encodeCertificate,
  encodeCertificateVerify,
} from "#transport/tls13/certificate-messages.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_120 } from "#transport/tls13/fingerprints/chrome.ts";
import { readEncryptedExtensions } from "#transport/tls13/encrypted-extensions.ts";
import {
  decodeClientHello,
  decodeServerHello,
  readKeyShares,
  readServerShare,
} from "#transport/tls13/hello-messages.ts";
import { readOffer } from "#transport/tls13/offered-hello.ts";
import { checkTicket, decodeKeyUpdate } from "#transport/tls13/post-handshake.ts";
import { deflateSync } from "node:zlib";
import { makeCertificate } from "../../support/certificate.ts";
import { connection13 } from "../../support/tls13-dial.ts";
import { answerHello, sealFlight } from "../../support/tls13-server.ts";
import { once, type Target } from "./kinds.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const NOTHING = Buffer.alloc(0);
const certificate = makeCertificate({ names: ["server.test"] });

/** One hello for all, so that a good flight goes on being good. */
const SAID = buildHello(CHROME_120, { serverName: "server.test", protocols: null });
const HELLO = SAID.message;
const OFFER = readOffer(HELLO);
const FLIGHT = answerHello(HELLO, certificate);
const CHAIN = encodeCertificate(NOTHING, [new X509Certificate(certificate.cert).raw]).subarray(4);
const PACKED = deflateSync(CHAIN);
const COMPRESSED = Buffer.concat([
  hex("0001 00"),
  Buffer.of(CHAIN.length >> 8, CHAIN.length & 0xff, 0, PACKED.length >> 8, PACKED.length & 0xff),
  PACKED,
]);

export const tls13Targets: readonly Target[] = [
  once("TLS ClientHello", [HELLO.subarray(4)], decodeClientHello),
  once("TLS ServerHello", [FLIGHT.parts.hello.subarray(4)], decodeServerHello),
  once("TLS key shares", [hex("0008 001d 0004 01020304")], readKeyShares),
  once("TLS server share", [hex("001d 0004 01020304")], readServerShare),
  once("TLS EncryptedExtensions", [hex("0009 0010 0005 0003 026832")], (bytes) =>
    readEncryptedExtensions(bytes, OFFER),
  ),
  once("TLS Certificate", [CHAIN], (bytes) => decodeCertificate(bytes, NOTHING)),
  once("TLS compressed certificate", [COMPRESSED], (bytes) => decompressCertificate(bytes, [1, 2, 3])),
  once("TLS CertificateRequest", [hex("00 000a 000d 0006 0004 0403 0804")], decodeCertificateRequest),
  once(
    "TLS CertificateVerify",
    [encodeCertificateVerify({ scheme: 0x0403, signature: Buffer.alloc(70, 1) }).subarray(4)],
    decodeCertificateVerify,
  ),
  once("TLS ticket", [hex("00000e10 00000001 01 00 0002 aabb 0000")], checkTicket),
  once("TLS KeyUpdate", [hex("01")], decodeKeyUpdate),
  {
    name: "TLS 1.3 server",
    seeds: [sealFlight(answerHello(HELLO, certificate))],
    run(pieces) {
      const connection = connection13({ hello: SAID });
      connection.start();
      for (const piece of pieces) {
        connection.feed(piece);
        if (connection.read() !== null) throw new TypeError("payload of a server that is not known");
      }
    },
  },
];
