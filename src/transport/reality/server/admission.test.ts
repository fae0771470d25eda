import assert from "node:assert/strict";
import fc from "fast-check";
import { createPrivateKey, createPublicKey, randomBytes } from "node:crypto";
import { test } from "node:test";
import { sealHello } from "#transport/reality/token.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_120, CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import { FIREFOX_148 } from "#transport/tls13/fingerprints/firefox.ts";
import { SAFARI_26 } from "#transport/tls13/fingerprints/safari.ts";
import { openX25519Agreement, x25519PrivateKey } from "#transport/tls13/key-exchange.ts";
import { plainRecord, RECORD } from "#transport/tls13/records.ts";
import { runs } from "../../../../test/support/runs.ts";
import { admit, type AdmissionRules } from "./admission.ts";
import { HelloReader } from "#transport/tls13/hello-reader.ts";

const rawKey = randomBytes(32);
const privateKey = openX25519Agreement(rawKey);
const publicKey = createPublicKey(
  createPrivateKey(x25519PrivateKey(rawKey).export({ type: "pkcs8", format: "pem" })),
)
  .export({ type: "spki", format: "der" })
  .subarray(-32);
const SHORT_ID = "0123456789abcdef";
const NOW_MS = 1_700_000_000_000;
const rules: AdmissionRules = {
  privateKey,
  serverNames: new Set(["site.test"]),
  shortIds: new Set([SHORT_ID]),
  maxTimeDifferenceMs: 60_000,
};

interface Keys {
  readonly serverName?: string;
  readonly publicKey?: Buffer;
  readonly shortId?: string;
  readonly nowMs?: number;
}

function hello(
  { serverName = "site.test", shortId = SHORT_ID, nowMs = NOW_MS, ...keys }: Keys = {},
  template = CHROME_133,
) {
  const options = {
    publicKey: keys.publicKey ?? publicKey,
    shortId: Buffer.from(shortId, "hex"),
    clientVersion: [26, 7, 28],
  } as const;
  return sealHello(buildHello(template, { serverName, protocols: null }), options, nowMs).hello.message;
}

test("each browser's hello with a token is let in", () => {
  for (const template of [CHROME_133, CHROME_120, FIREFOX_148, SAFARI_26]) {
    const admitted = admit(hello({}, template), rules, NOW_MS);
    assert.equal(admitted?.serverName, "site.test");
    assert.deepEqual(admitted?.protocols, ["h2", "http/1.1"]);
  }
});

test("names are compared without case; a clock may differ by the limit, and has to be known", () => {
  assert.notEqual(admit(hello({ serverName: "SITE.test" }), rules, NOW_MS), null);
  assert.notEqual(admit(hello({ nowMs: NOW_MS - 59_000 }), rules, NOW_MS), null);
  assert.equal(admit(hello({ nowMs: NOW_MS }), rules, Number.NaN), null);
});

const REFUSED: readonly (readonly [string, Keys])[] = [
  ["another name", { serverName: "other.test" }],
  ["no name", { serverName: "" }],
  ["another key", { publicKey: randomBytes(32) }],
  ["another short id", { shortId: "0123456789abcdee" }],
  ["an old token", { nowMs: NOW_MS - 62_000 }],
  ["one of the future", { nowMs: NOW_MS + 62_000 }],
];
for (const [name, keys] of REFUSED)
  test(`dest's business: ${name}`, () => assert.equal(admit(hello(keys), rules, NOW_MS), null));

test("every truncation, every changed byte and noise are dest's business", () => {
  const good = hello();
  for (let size = 0; size < good.length; size++)
    assert.equal(admit(good.subarray(0, size), rules, NOW_MS), null, `${size} bytes`);
  for (let at = 0; at < good.length; at++) {
    const changed = Buffer.from(good);
    changed[at] = (good[at] ?? 0) ^ (1 << (at & 7));
    // The four bytes in front are the message's header, which the reader of records has judged.
    if (at >= 4) assert.equal(admit(changed, rules, NOW_MS), null, `byte ${at}`);
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (noise) => {
      assert.equal(admit(Buffer.from(noise), rules, NOW_MS), null);
      const behind = Buffer.concat([good.subarray(0, noise.length % good.length), noise]);
      assert.equal(admit(behind, rules, NOW_MS), null);
    }),
    { numRuns: runs(1000) },
  );
});

test("a hello is put together from any pieces and records, and nothing may follow it", () => {
  const message = hello();
  const records = (size: number): Buffer =>
    Buffer.concat(
      Array.from({ length: Math.ceil(message.length / size) }, (_, at) =>
        plainRecord(RECORD.handshake, message.subarray(at * size, (at + 1) * size), 0x0301),
      ),
    );
  for (const recordSize of [1, 100, message.length])
    for (const pieceSize of [1, 7, 5000]) {
      const bytes = records(recordSize);
      const reader = new HelloReader();
      for (let at = 0; at < bytes.length; at += pieceSize) {
        const found = reader.push(bytes.subarray(at, at + pieceSize));
        if (at + pieceSize < bytes.length) assert.equal(found, "more");
        else assert.deepEqual(found, message);
      }
    }
  assert.equal(new HelloReader().push(Buffer.concat([records(5000), Buffer.of(20)])), "none");
  assert.equal(new HelloReader().push(Buffer.from("GET / HTTP/1.1\r\n")), "none");
  const endless = new HelloReader();
  const piece = plainRecord(RECORD.handshake, Buffer.concat([Buffer.of(1, 0, 0x60, 0), Buffer.alloc(9000)]));
  assert.equal(endless.push(piece), "more");
  assert.equal(endless.push(plainRecord(RECORD.handshake, Buffer.alloc(9000))), "none");
});
