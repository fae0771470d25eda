import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOfBrowser, SHOWN_BROWSERS } from "#core/browser-names.ts";
import { CAPTURES } from "../../../../test/support/browser-hellos.ts";
import { bytesByClass, bytesOfCapture } from "../../../../test/support/hello-bytes.ts";
import { ja3, ja4, shapeOf } from "../../../../test/support/ja-fingerprint.ts";
import { decodeClientHello } from "#transport/tls13/hello-messages.ts";
import { GROUP, openKeyShare } from "#transport/tls13/key-exchange.ts";
import { readOffer } from "#transport/tls13/offered-hello.ts";
import { buildHello } from "./build-hello.ts";
import { Fingerprints } from "./names.ts";

const HELLOS = 50;
const PLAIN = { serverName: "example.com", protocols: null };
const fingerprints = new Fingerprints();
const template = (name: string) => fingerprints.template(name) ?? assert.fail(name);
const sorted = (shape: readonly string[]): string[] => [...shape].sort();

for (const capture of CAPTURES)
  test(`${capture.name}: ${HELLOS} hellos have the JA3, JA4 and shape of the capture`, () => {
    const orders = new Set<string>();
    for (let left = HELLOS; left > 0; left--) {
      const { message } = buildHello(template(capture.name), PLAIN);
      assert.equal(ja4(message), capture.ja4);
      if (capture.ja3 !== null) assert.equal(ja3(message), capture.ja3);
      const shape = shapeOf(message);
      orders.add(shape.map((line) => line.slice(0, 6)).join());
      if (capture.ja3 === null) assert.deepEqual(sorted(shape), sorted(capture.shape));
      else assert.deepEqual(shape, capture.shape);
      assert.match(shape[1] ?? "", capture.shape[1]?.startsWith("GREASE") ? /^GREASE $/ : /^0000 /);
    }
    assert.equal(orders.size > HELLOS / 2, capture.ja3 === null, "extensions change places, or never do");
  });

/** Of an Encrypted ClientHello that is none: 16 bytes and one of these lengths. */
const payloads = (name: string): readonly number[] =>
  name.startsWith("firefox") ? [223] : [128, 160, 192, 224];

for (const capture of CAPTURES)
  test(`${capture.name}: byte by byte ${HELLOS} hellos are of the capture's classes`, () => {
    for (let left = HELLOS; left > 0; left--) {
      const { message } = buildHello(template(capture.name), PLAIN);
      const hidden = decodeClientHello(message.subarray(4)).extensions.get(0xfe0d);
      const variant = {
        name: PLAIN.serverName,
        aead: hidden?.readUInt16BE(3) ?? 0,
        payloadBytes: hidden?.readUInt16BE(40) ?? 0,
      };
      if (hidden !== undefined) {
        assert.ok(payloads(capture.name).includes(variant.payloadBytes - 16), String(variant.payloadBytes));
        assert.ok(capture.name.startsWith("firefox") ? [1, 3].includes(variant.aead) : variant.aead === 1);
      }
      const [front, ...seen] = bytesByClass(message);
      const [expected, ...others] = bytesOfCapture(capture, variant);
      assert.equal(front, expected);
      if (capture.ja3 === null) assert.deepEqual(sorted(seen), sorted(others));
      else assert.deepEqual(seen, others);
    }
  });

test("GREASE is one draw for group and share, and the two extensions of it differ", () => {
  const drawn = new Set<number>();
  for (let left = HELLOS; left > 0; left--) {
    const { message } = buildHello(template("chrome"), PLAIN);
    const { extensions } = decodeClientHello(message.subarray(4));
    const isGrease = (value: number): boolean => (value & 0x0f0f) === 0x0a0a;
    const group = extensions.get(10)?.readUInt16BE(2) ?? 0;
    assert.ok(isGrease(group));
    assert.equal(extensions.get(51)?.readUInt16BE(2), group);
    const types = [...extensions.keys()].filter(isGrease);
    assert.equal(types.length, 2, "as keys of a map they differ");
    drawn.add(group);
  }
  assert.ok(drawn.size > 5);
});

test("lengths are those of the captures", () => {
  for (const { name, messageBytes } of CAPTURES) {
    const seen = new Set<number>();
    for (let left = 80; left > 0; left--) seen.add(buildHello(template(name), PLAIN).message.length);
    for (const size of messageBytes) assert.ok(seen.has(size), `${name}: ${[...seen].join()} has no ${size}`);
  }
});

test("nothing of one hello comes again in the next", () => {
  const [one, two] = [0, 1].map(() => readOffer(buildHello(template("chrome"), PLAIN).message));
  assert.ok(one !== undefined && two !== undefined);
  assert.notDeepEqual(one.random, two.random);
  assert.notDeepEqual(one.sessionId, two.sessionId);
  assert.notDeepEqual(one.shares.get(GROUP.x25519), two.shares.get(GROUP.x25519));
});

test("the protocols of the node take the place of the browser's, and settings go with h2", () => {
  const offer = (protocols: readonly string[] | null) =>
    readOffer(buildHello(template("chrome"), { serverName: "", protocols }).message);
  assert.deepEqual(offer(null).protocols, ["h2", "http/1.1"]);
  assert.deepEqual(offer(["http/1.1"]).protocols, ["http/1.1"]);
  assert.deepEqual(offer([]).protocols, []);
  assert.equal(offer(["http/1.1"]).extensions.has(17613), false);
  assert.equal(offer(["h2"]).extensions.has(17613), true);
  assert.equal(offer(null).extensions.has(0), false, "no name, no server_name");
});

test("behind a retry only share, cookie and padding differ", () => {
  for (const name of ["chrome", "firefox", "safari16", "ios"]) {
    const first = buildHello(template(name), PLAIN);
    const share = openKeyShare(GROUP.p384) ?? assert.fail();
    const second = first.again({ share, cookie: Buffer.from("0003aabbcc", "hex") });
    const [before, behind] = [readOffer(first.message), readOffer(second.message)];
    assert.deepEqual(behind.random, before.random);
    assert.deepEqual(behind.sessionId, before.sessionId);
    assert.deepEqual([...behind.shares], [[GROUP.p384, share.share]]);
    assert.deepEqual(second.shares, [share]);
    const same = (shape: string[]) => shape.filter((line) => !/^(0033|002c|0015) /.test(line));
    assert.deepEqual(same(shapeOf(second.message)), same(shapeOf(first.message)));
    assert.ok(shapeOf(second.message).includes("002c 0003aabbcc"));
  }
});

test("random and randomized are drawn once", () => {
  const one = new Fingerprints();
  for (const name of ["random", "randomized", "randomizednoalpn"])
    assert.equal(one.template(name), one.template(name));
  const drawn = new Set(Array.from({ length: 40 }, () => new Fingerprints().template("random")?.name));
  assert.ok(drawn.size > 1);
  for (let left = 20; left > 0; left--) {
    const randomized = new Fingerprints().template("randomizednoalpn") ?? assert.fail();
    const offer = readOffer(buildHello(randomized, PLAIN).message);
    assert.deepEqual(offer.protocols, []);
    assert.ok(offer.shares.has(GROUP.x25519) && offer.versions.includes(0x0304));
  }
});

test("without the hybrid share it is the browser of the time before", () => {
  for (const [name, older] of [
    ["chrome", "Chrome 120"],
    ["firefox", "Firefox 120"],
    ["safari", "Safari 16.0"],
    ["ios", "iOS 14"],
  ] as const)
    assert.equal(fingerprints.template(name, false)?.name, older);
});

test("each name that can be shown has a template, and no other", () => {
  for (const name of SHOWN_BROWSERS) assert.ok(fingerprints.template(name), name);
  for (const name of ["android", "none", "", "netscape"]) assert.equal(fingerprints.template(name), null);
  assert.equal(kindOfBrowser("Chrome"), "shown");
  assert.equal(kindOfBrowser("android"), "of TLS 1.2");
  assert.equal(kindOfBrowser(""), "none");
  assert.equal(kindOfBrowser("netscape"), "unknown");
  assert.equal(fingerprints.template("edge"), fingerprints.template("chrome"));
});
