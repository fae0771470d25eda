/** What clients, sites and servers say to the two sides of REALITY before they are known. */
import { fail } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { checkProof, readLeafKey } from "#transport/reality/certificate.ts";
import { admit, type Admitted } from "#transport/reality/server/admission.ts";
import { readDestFlight } from "#transport/reality/server/dest-flight.ts";
import { Finishing } from "#transport/reality/server/finishing.ts";
import { OwnCertificate } from "#transport/reality/server/own-certificate.ts";
import { RealityConnection } from "#transport/reality/server/server-connection.ts";
import { type ShapedFlight, shapeFlight } from "#transport/reality/server/server-handshake.ts";
import { sealHello } from "#transport/reality/token.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_120 } from "#transport/tls13/fingerprints/chrome.ts";
import { HelloReader } from "#transport/tls13/hello-reader.ts";
import { openX25519Agreement, x25519PrivateKey, x25519PublicBytes } from "#transport/tls13/key-exchange.ts";
import { plainRecord, RECORD } from "#transport/tls13/records.ts";
import { once, type Target } from "./kinds.ts";

const RAW = Buffer.alloc(32, 7);
const SHORT_ID = "0123456789abcdef";
const NOW_MS = 1_700_000_000_000;
const NOTHING = Buffer.alloc(0);
const RULES = {
  privateKey: openX25519Agreement(RAW),
  serverNames: new Set(["site.test"]),
  shortIds: new Set([SHORT_ID]),
  maxTimeDifferenceMs: 60_000,
};
const OPTIONS = {
  publicKey: x25519PublicBytes(x25519PrivateKey(RAW)),
  shortId: Buffer.from(SHORT_ID, "hex"),
  clientVersion: [26, 7, 28],
} as const;

const SEALED = sealHello(
  buildHello(CHROME_120, { serverName: "site.test", protocols: null }),
  OPTIONS,
  NOW_MS,
);
const HELLO = SEALED.hello.message;
const ADMITTED = admit(HELLO, RULES, NOW_MS) as Admitted;
const CERTIFICATE = new OwnCertificate(null);
const DER = CERTIFICATE.issue(SEALED.authKey, { clientHello: HELLO, serverHello: NOTHING });

/** ServerHello with the suite 0x1301 and an X25519 share, a change, and four records of a site's lengths. */
const SERVER_HELLO = Buffer.concat([
  Buffer.from("020000760303", "hex"),
  Buffer.alloc(32, 3),
  Buffer.of(32),
  ADMITTED.sessionId,
  Buffer.from("130100002e002b0002030400330024001d0020", "hex"),
  OPTIONS.publicKey,
]);
const record = (size: number): Buffer => plainRecord(RECORD.applicationData, Buffer.alloc(size, 9));
const FLIGHT = Buffer.concat([
  plainRecord(RECORD.handshake, SERVER_HELLO),
  plainRecord(RECORD.changeCipherSpec, Buffer.of(1)),
  ...[32, 900, 120, 70].map(record),
]);

function shapeLike(bytes: Buffer): ShapedFlight | null {
  const flight = readDestFlight(bytes);
  return typeof flight === "string" ? null : shapeFlight(ADMITTED, flight, CERTIFICATE);
}
/** One flight for all clients: none of them has its keys. */
const SHAPED = shapeLike(FLIGHT) ?? fail("the flight of the site is none");

/** What one end says behind the flight while the other one is silent. Neither has the keys. */
function finishing(name: string, seeds: readonly Buffer[], from: "client" | "dest"): Target {
  return {
    name,
    seeds,
    run(pieces) {
      using connection = new RealityConnection(SHAPED, () => [100]);
      connection.start();
      const visit = new Finishing(connection, { toClient() {}, toDest() {} });
      for (const piece of pieces) {
        const judgement = from === "client" ? visit.fromClient(piece) : visit.fromDest(piece);
        if (judgement === "finished" || connection.isSecure)
          throw new TypeError("a client without the keys has finished");
        if (judgement === "dest") return void visit.giveBack();
      }
    },
  };
}

export const realityTargets: readonly Target[] = [
  once("REALITY ClientHello", [HELLO], (bytes) => admit(bytes, RULES, NOW_MS)),
  {
    name: "REALITY first message of a client",
    seeds: [plainRecord(RECORD.handshake, HELLO, 0x0301)],
    run(pieces) {
      const reader = new HelloReader();
      for (const piece of pieces) {
        const message = reader.push(piece);
        if (message === "none") return;
        if (message !== "more") return void admit(message, RULES, NOW_MS);
      }
    },
  },
  once("REALITY flight of dest", [FLIGHT], shapeLike),
  finishing("REALITY records of a client", [Buffer.concat([FLIGHT.subarray(-200), record(60)])], "client"),
  finishing(
    "REALITY client without keys",
    [Buffer.concat([plainRecord(RECORD.changeCipherSpec, Buffer.of(1)), record(53)])],
    "client",
  ),
  finishing("REALITY records behind dest's flight", [Buffer.concat([200, 200].map(record))], "dest"),
  once("REALITY certificate", [DER], (bytes) => {
    const shown = { chain: [bytes], clientHello: HELLO, serverHello: SERVER_HELLO, isEchRejected: false };
    const expected = { authKey: SEALED.authKey, mldsa65: randomBytes(1952) };
    checkProof(shown, readLeafKey(shown), expected);
  }),
];
