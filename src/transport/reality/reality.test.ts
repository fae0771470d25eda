import assert from "node:assert/strict";
import { createHmac, createPrivateKey, createPublicKey, diffieHellman, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import { GROUP } from "#transport/tls13/key-exchange.ts";
import type { ClientHelloMessage } from "#transport/tls13/offered-hello.ts";
import { makeCertificate } from "../../../test/support/certificate.ts";
import { checkProof, KnownLeaf, readLeafKey } from "./certificate.ts";
import { readReality } from "./options.ts";
import { OwnCertificate } from "./server/own-certificate.ts";
import { sealHello } from "./token.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");
const PUBLIC_KEY = "605a725d2a4adfeeb1a29e17edd621c1b7593ee8cdbc44ac6c4ab6e2f805d23c";

/** Half of the hello's random. */
const RANDOM = "00112233445566778899aabbccddeeff";
test("the token of a known hello", () => {
  const message = hex(`
    010000d40303${RANDOM}${RANDOM}20${"00".repeat(32)}000613011302130301000085
    00000010000e00000b6578616d706c652e636f6d 00170000 ff01000100 000a00040002001d 000b00020100
    001000050003026832 000d001600140403080404010503080505010806060108070201
    003300260024001d002007a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c 002d00020101 002b0003020304`);
  const raw = Buffer.from(Array.from({ length: 32 }, (_, at) => at + 1));
  const privateKey = createPrivateKey({
    key: Buffer.concat([hex("302e020100300506032b656e04220420"), raw]),
    type: "pkcs8",
    format: "der",
  });
  const agreeX25519 = (peer: Buffer): Buffer =>
    diffieHellman({
      privateKey,
      publicKey: createPublicKey({
        key: Buffer.concat([hex("302a300506032b656e032100"), peer]),
        type: "spki",
        format: "der",
      }),
    });
  const share = {
    group: GROUP.x25519,
    share: Buffer.alloc(32),
    finish: agreeX25519,
    agreeX25519,
    [Symbol.dispose]: () => {},
  };
  const hello: ClientHelloMessage = { message, shares: [share], again: () => assert.fail() };
  const options = {
    publicKey: hex(PUBLIC_KEY),
    shortId: hex("0123456789abcdef"),
    clientVersion: [26, 7, 28],
  } as const;
  const sealed = sealHello(hello, options, 1_700_000_000_999);
  assert.deepEqual(sealed.authKey, hex("ce8014b95dd4198dd973494340c23ab1fbde5465175f6b0d2d277fffd28986bd"));
  assert.deepEqual(
    sealed.hello.message.subarray(39, 71),
    hex("a0e8fcf0d74513d0b06bdfb69e102f8251ba6b3cb89e9097e630cf244ff5ff13"),
  );
  assert.deepEqual(sealed.hello.message.subarray(71), message.subarray(71));
  assert.throws(() => sealed.hello.again({ share: null, cookie: null }), /another ClientHello/);
});

test("the certificate's proof is the HMAC of its key", () => {
  const authKey = hex("ce8014b95dd4198dd973494340c23ab1fbde5465175f6b0d2d277fffd28986bd");
  const key = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  assert.deepEqual(
    createHmac("sha512", authKey).update(key).digest(),
    hex(`908e79b6b0027a2844202606f38e248b67adafcbda26c36fb3ce5a99c03b7e8f69244331ba630624b72f2aae63db2c4fd77084a7e4
    f0a309cc919338a0812fba`),
  );
  const leaf = new X509Certificate(makeCertificate().cert);
  const shown = {
    chain: [leaf.raw],
    clientHello: Buffer.alloc(0),
    serverHello: Buffer.alloc(0),
    isEchRejected: false,
  };
  assert.equal(checkProof(shown, readLeafKey(shown), { authKey, mldsa65: null }), "foreign");
});

test("a certificate that differs from the last one in more than its proof is read anew", () => {
  const hellos = { clientHello: Buffer.alloc(9), serverHello: Buffer.alloc(9) };
  const shownBy = (certificate: OwnCertificate, authKey: Buffer) => ({
    chain: [certificate.issue(authKey, hellos)],
    ...hellos,
    isEchRejected: false,
  });
  const [server, other] = [new OwnCertificate(null), new OwnCertificate(null)];
  const [one, two] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const known = new KnownLeaf();
  assert.equal(known.find(shownBy(server, one)), null);
  assert.equal(known.find({ chain: [] }), null);
  assert.equal(known.find({ chain: [Buffer.alloc(3)] }), null);
  const leaf = readLeafKey(shownBy(server, one));
  known.keep(shownBy(server, one), leaf);
  const later = shownBy(server, two);
  assert.equal(known.find(later), leaf);
  assert.equal(checkProof(later, leaf, { authKey: two, mldsa65: null }), "authentic");
  assert.equal(checkProof(later, leaf, { authKey: one, mldsa65: null }), "foreign");
  const foreign = shownBy(other, two);
  assert.equal(known.find(foreign), null);
  assert.notDeepEqual(readLeafKey(foreign).ed25519, leaf.ed25519);
});

test("a token in a browser's hello changes the session id alone", () => {
  const hello = buildHello(CHROME_133, { serverName: "example.com", protocols: null });
  const options = readReality({
    "public-key": hex(PUBLIC_KEY).toString("base64url"),
    "short-id": "01",
    "support-x25519mlkem768": true,
  });
  assert.ok(options);
  assert.deepEqual(options.clientVersion, [26, 7, 28]);
  assert.deepEqual(options.shortId, hex("0100000000000000"));
  assert.equal(options.spiderX, "/");
  const sealed = sealHello(hello, options).hello.message;
  assert.equal(sealed.length, hello.message.length);
  assert.deepEqual(sealed.subarray(0, 39), hello.message.subarray(0, 39));
  assert.deepEqual(sealed.subarray(71), hello.message.subarray(71));
  assert.notDeepEqual(sealed.subarray(39, 71), hello.message.subarray(39, 71));
});

test("the version may be another one, by either key", () => {
  const keys = { "public-key": "", "short-id": "", "support-x25519mlkem768": false };
  assert.deepEqual(readReality({ ...keys, "client-version": "1.8.2" })?.clientVersion, [1, 8, 2]);
  assert.deepEqual(readReality({ ...keys, "client-ver": "1.8.1" })?.clientVersion, [1, 8, 1]);
  assert.equal(readReality({ ...keys, "spider-x": "news" })?.spiderX, "/news");
  assert.equal(readReality(undefined), null);
});
