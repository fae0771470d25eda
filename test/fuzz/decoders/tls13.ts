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
import { EchAcceptor } from "#transport/tls13/ech/accept.ts";
import { readEchConfigs } from "#transport/tls13/ech/config.ts";
import { decodeEch } from "#transport/tls13/ech/extension.ts";
import { makeInner, packInner, unpackInner } from "#transport/tls13/ech/inner-hello.ts";
import { configsOfKeys, generateEchKeyPair, parseEchKeys } from "#transport/tls13/ech/keys.ts";
import { hideHello } from "#transport/tls13/ech/offer.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_120 } from "#transport/tls13/fingerprints/chrome.ts";
import { readEncryptedExtensions } from "#transport/tls13/encrypted-extensions.ts";
import {
  decodeClientHello,
  decodeServerHello,
  encodeServerHello,
  readKeyShares,
  readServerShare,
  RETRY_RANDOM,
} from "#transport/tls13/hello-messages.ts";
import type { KeyShare } from "#transport/tls13/key-exchange.ts";
import { ServerConnection } from "#transport/tls13/server-connection.ts";
import { readOffer } from "#transport/tls13/offered-hello.ts";
import { decodeKeyUpdate, decodeTicket } from "#transport/tls13/post-handshake.ts";
import { plainRecord, RECORD } from "#transport/tls13/records.ts";
import { deflateSync } from "node:zlib";
import { makeCertificate } from "../../support/certificate.ts";
import { connection13 } from "../../support/tls13-dial.ts";
import { answerHello, sealFlight, sealerOf } from "../../support/tls13-server.ts";
import { once, type Target } from "./kinds.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const NOTHING = Buffer.alloc(0);
/** Of shares that altered flights hold. */
const MOST_SECRETS = 64;
const certificate = makeCertificate({ names: ["server.test"] });

const MADE = buildHello(CHROME_120, { serverName: "server.test", protocols: null });
/** One hello for all, so that a good flight goes on being good; a connection that ends leaves it its keys. */
const SAID = { ...MADE, shares: MADE.shares.map(remembering) };
const HELLO = SAID.message;
const OFFER = readOffer(HELLO);
const FLIGHT = answerHello(HELLO, certificate);
const GOOD = answerHello(HELLO, certificate);
const GOOD_RECORDS = sealFlight(GOOD);
const { extensions, certificate: shown, verify, finished } = FLIGHT.parts;
const TICKET = hex("04 000010 00000e10 00000001 01 00 0002 aabb 0000");
const KEY_UPDATE = hex("18 000001 01");
const CHAIN = encodeCertificate(NOTHING, [new X509Certificate(certificate.cert).raw]).subarray(4);
const PACKED = deflateSync(CHAIN);
const COMPRESSED = Buffer.concat([
  hex("0001 00"),
  Buffer.of(CHAIN.length >> 8, CHAIN.length & 0xff, 0, PACKED.length >> 8, PACKED.length & 0xff),
  PACKED,
]);

const ECH_PAIR = generateEchKeyPair("public.test");
const ECH_KEYS = parseEchKeys(ECH_PAIR.key, "keys");
const ECH_LIST = Buffer.from(ECH_PAIR.config, "base64");
const HIDDEN = readEchConfigs(ECH_LIST).map((config) => hideHello(SAID, config, "server.test"));
const HIDING = HIDDEN.map(({ message }) => message);
const SERVING = {
  identity: { chain: [new X509Certificate(certificate.cert).raw], key: certificate.privateKey },
  protocols: ["h2"],
  echKeys: ECH_KEYS,
  retryConfigs: ECH_LIST,
};
const FLIGHTS = HIDDEN.map(({ message }) => {
  using server = new ServerConnection(SERVING);
  server.feed(plainRecord(RECORD.handshake, message));
  server.read();
  return server.takeOutput() ?? NOTHING;
});
const OUTER = decodeClientHello(HELLO.subarray(4));
const INNER = packInner(makeInner(OUTER, Buffer.alloc(32, 1), "server.test"), OUTER, 0);

/** A HelloRetryRequest that takes no hidden hello, though it has a place for the proof. */
const RETRY = plainRecord(
  RECORD.handshake,
  encodeServerHello({
    random: RETRY_RANDOM,
    sessionId: OUTER.sessionId,
    suite: 0x1301,
    extensions: new Map([
      [43, hex("0304")],
      [51, hex("0017")],
      [65037, Buffer.alloc(8)],
    ]),
  }),
);

/** The secret with the share of the good flights is computed once: most of what an execution costs would be that. */
function remembering(share: KeyShare): KeyShare {
  const known = new Map<string, Buffer>();
  return {
    ...share,
    finish(peer) {
      const secret = known.get(peer.toString("latin1"));
      if (secret !== undefined) return Buffer.from(secret);
      const made = share.finish(peer);
      if (known.size < MOST_SECRETS) known.set(peer.toString("latin1"), Buffer.from(made));
      return made;
    },
    [Symbol.dispose]() {},
  };
}

/** Handshake messages that a server who has the keys says; `before`: its records so far. */
function sealed(
  name: string,
  seeds: readonly Buffer[],
  { before, secret }: { readonly before: Buffer; readonly secret: Buffer },
): Target {
  return {
    name,
    seeds,
    run(pieces) {
      using connection = connection13({ hello: SAID });
      using sealer = sealerOf(secret);
      connection.start();
      connection.feed(before);
      connection.read();
      for (const piece of pieces) {
        if (piece.length === 0) continue;
        connection.feed(sealer.seal(RECORD.handshake, piece));
        if (connection.read() !== null) throw new TypeError("payload of handshake messages");
      }
    },
  };
}

export const tls13Targets: readonly Target[] = [
  once("TLS ClientHello", [HELLO.subarray(4)], decodeClientHello),
  once("TLS ServerHello", [FLIGHT.parts.hello.subarray(4)], decodeServerHello),
  once("TLS key shares", [hex("0008 001d 0004 01020304")], readKeyShares),
  once("TLS server share", [hex("001d 0004 01020304")], readServerShare),
  once("TLS EncryptedExtensions", [hex("0009 0010 0005 0003 026832")], (bytes) =>
    readEncryptedExtensions(bytes, OFFER),
  ),
  once("TLS Certificate", [CHAIN], (bytes) => decodeCertificate(bytes, OFFER.extensions)),
  once("TLS compressed certificate", [COMPRESSED], (bytes) => decompressCertificate(bytes, [1, 2, 3])),
  once("TLS CertificateRequest", [hex("00 000a 000d 0006 0004 0403 0804")], decodeCertificateRequest),
  once(
    "TLS CertificateVerify",
    [encodeCertificateVerify({ scheme: 0x0403, signature: Buffer.alloc(70, 1) }).subarray(4)],
    decodeCertificateVerify,
  ),
  once("TLS ticket", [hex("00000e10 00000001 01 00 0002 aabb 0000")], decodeTicket),
  once("TLS KeyUpdate", [hex("01")], decodeKeyUpdate),
  {
    name: "TLS 1.3 client",
    seeds: HIDING.map((message) => plainRecord(RECORD.handshake, message)),
    run(pieces) {
      using connection = new ServerConnection(SERVING);
      for (const piece of pieces) {
        connection.feed(piece);
        if (connection.read() !== null) throw new TypeError("payload of a client that is not known");
      }
    },
  },
  ...HIDDEN.map((hello) => ({
    name: "TLS 1.3 server of a hidden ClientHello",
    seeds: [...FLIGHTS, RETRY],
    run(pieces: readonly Buffer[]) {
      using connection = connection13({ hello });
      connection.start();
      for (const piece of pieces) {
        connection.feed(piece);
        if (connection.read() !== null) throw new TypeError("payload of a server that is not known");
      }
    },
  })),
  once("TLS ECH keys", [Buffer.from(ECH_PAIR.key)], (bytes) => configsOfKeys(bytes.toString("latin1"))),
  once("TLS ECHConfigList", [ECH_LIST], readEchConfigs),
  once("TLS encrypted_client_hello", [hex("00 0001 0001 07 0002 aabb 0002 ccdd"), hex("01")], decodeEch),
  once("TLS hidden ClientHello", [INNER], (bytes) => unpackInner(bytes, OUTER)),
  once("TLS ClientHello that hides one", HIDING, (bytes) => new EchAcceptor(ECH_KEYS).open(bytes)),
  sealed("TLS 1.3 messages of a server", [Buffer.concat([extensions, shown, verify, finished])], {
    before: plainRecord(RECORD.handshake, FLIGHT.parts.hello),
    secret: FLIGHT.secrets.handshake,
  }),
  sealed("TLS 1.3 messages behind the handshake", [TICKET, KEY_UPDATE, Buffer.concat([TICKET, TICKET])], {
    before: GOOD_RECORDS,
    secret: GOOD.secrets.application,
  }),
  {
    name: "TLS 1.3 server",
    seeds: [sealFlight(answerHello(HELLO, certificate))],
    run(pieces) {
      using connection = connection13({ hello: SAID });
      connection.start();
      for (const piece of pieces) {
        connection.feed(piece);
        if (connection.read() !== null) throw new TypeError("payload of a server that is not known");
      }
    },
  },
];
