import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { TlsFault } from "#transport/tls13/alerts.ts";
import { cipherSuite } from "#transport/tls13/cipher-suites.ts";
import { EXTENSION } from "#transport/tls13/extensions.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_133, QQ_11 } from "#transport/tls13/fingerprints/chrome.ts";
import { FIREFOX_148 } from "#transport/tls13/fingerprints/firefox.ts";
import { IOS_14, SAFARI_26 } from "#transport/tls13/fingerprints/safari.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { decodeClientHello, encodeServerHello, RETRY_RANDOM } from "#transport/tls13/hello-messages.ts";
import { openKeyShare } from "#transport/tls13/key-exchange.ts";
import { type ClientHelloMessage, readOffer } from "#transport/tls13/offered-hello.ts";
import { Transcript } from "#transport/tls13/transcript.ts";
import { vector16 } from "#transport/tls13/wire.ts";
import { CAPTURES } from "../../../../test/support/browser-hellos.ts";
import { ja4 } from "../../../../test/support/ja-fingerprint.ts";
import { EchAcceptor } from "./accept.ts";
import { EchAttempt } from "./attempt.ts";
import { readEchConfigs } from "./config.ts";
import { confirmationIn, makeConfirmation } from "./confirmation.ts";
import { decodeEch, encodeOuterEch } from "./extension.ts";
import { unpackInner } from "./inner-hello.ts";
import { generateEchKeyPair, parseEchKeys } from "./keys.ts";
import { hideHello } from "./offer.ts";

const REAL = "a-name-to-hide.example.org";
const PUBLIC = "public.example.net";
const TEMPLATES: readonly HelloTemplate[] = [CHROME_133, FIREFOX_148, SAFARI_26, IOS_14, QQ_11];
const AES_128 = cipherSuite(0x1301) ?? assert.fail();

const pair = generateEchKeyPair(PUBLIC);
const keys = parseEchKeys(pair.key, "listener l: ech-key");
const configs = Buffer.from(pair.config, "base64");
const [config = assert.fail()] = readEchConfigs(configs);

function hide(template = CHROME_133, serverName = REAL): ClientHelloMessage {
  return hideHello(buildHello(template, { serverName: PUBLIC, protocols: null }), config, serverName);
}

for (const template of TEMPLATES)
  test(`${template.name}: what is hidden is found again, and shows only to who has the key`, () => {
    const hello = hide(template);
    assert.ok(hello.message.includes(PUBLIC));
    assert.equal(hello.message.includes(REAL), false);
    const inner = new EchAcceptor(keys).open(hello.message) ?? assert.fail("not opened");
    assert.deepEqual(inner, hello.hidden?.message);
    assert.ok(inner.includes(REAL));
    const [seen, hidden] = [readOffer(hello.message), readOffer(inner)];
    assert.deepEqual(
      hidden.versions.filter((version) => (version & 0x0f0f) !== 0x0a0a),
      [0x0304],
    );
    assert.deepEqual([hidden.shares, hidden.groups], [seen.shares, seen.groups]);
    assert.deepEqual([hidden.protocols, hidden.compressions], [seen.protocols, seen.compressions]);
    assert.deepEqual(hidden.sessionId, seen.sessionId);
    assert.notDeepEqual(hidden.random, seen.random);
    const others = parseEchKeys(generateEchKeyPair(PUBLIC).key, "l");
    assert.equal(new EchAcceptor(others).open(hello.message), null, "another key of the same number");
    assert.equal(new EchAcceptor([]).open(hello.message), null);
  });

test("a hello with a hidden one looks like the browser's own with an invented one", () => {
  for (const name of ["chrome", "firefox"]) {
    const template = name === "chrome" ? CHROME_133 : FIREFOX_148;
    const { ja4: known } = CAPTURES.find((one) => one.name === name) ?? assert.fail();
    const lengths = new Set<number>();
    for (let left = 10; left > 0; left--) {
      const { message } = hide(template, `${"n".repeat(left * 3)}.org`);
      assert.equal(ja4(message), known);
      lengths.add(decodeEchOf(message).payload.length % 32);
    }
    assert.deepEqual([...lengths], [16], "filled to 32, and the tag");
  }
});

test("names of the same size class are sealed to the same length", () => {
  const size = (name: string): number => hide(CHROME_133, name).message.length;
  assert.equal(size("a.example.org"), size("ab.example.org"));
  assert.ok(size("x".repeat(60) + ".example.org") > size("a.example.org"));
});

function decodeEchOf(message: Buffer) {
  const { extensions } = decodeClientHello(message.subarray(4));
  return decodeEch(extensions.get(EXTENSION.encryptedClientHello) ?? assert.fail()) ?? assert.fail();
}

test("a retry seals both hellos anew where the first was taken, and repeats the same bytes where not", () => {
  const hello = hide();
  const acceptor = new EchAcceptor(keys);
  acceptor.open(hello.message);
  const share = openKeyShare(0x17) ?? assert.fail();
  const cookie = Buffer.from("0003aabbcc", "hex");
  const taken = hello.hidden?.again({ share, cookie }) ?? assert.fail();
  assert.equal(decodeEchOf(taken.message).enc.length, 0);
  assert.deepEqual(acceptor.openAgain(taken.message), taken.hidden?.message);
  const { random, shares, extensions } = readOffer(taken.hidden?.message ?? assert.fail());
  assert.deepEqual([shares.has(0x17), extensions.has(EXTENSION.cookie)], [true, true]);
  assert.deepEqual(random, hello.hidden?.random);
  assert.throws(() => acceptor.openAgain(taken.message), TlsFault, "the same bytes once more");

  const ignored = hello.again({ share, cookie: null });
  assert.equal(ignored.hidden, undefined);
  assert.deepEqual(decodeEchOf(ignored.message), decodeEchOf(hello.message));
});

test("the confirmation of RFC 9849 §7.2 is for this hello and this answer alone", () => {
  const hello = hide();
  const attempt = new EchAttempt(hello.hidden ?? assert.fail());
  const answer = encodeServerHello({
    random: randomBytes(32),
    sessionId: Buffer.alloc(32),
    suite: AES_128.id,
    extensions: new Map([[43, Buffer.from("0304", "hex")]]),
  });
  const transcript = new Transcript();
  transcript.add(hello.hidden?.message ?? assert.fail());
  transcript.choose(AES_128);
  const { random } = hello.hidden ?? assert.fail();
  const confirmed = { suite: AES_128, random, transcript, isRetry: false };
  confirmationIn(answer, false)?.set(makeConfirmation(answer, confirmed));
  assert.equal(attempt.settle(answer, AES_128), true);
  assert.equal(attempt.rejection, null);
  assert.throws(() => attempt.takeExtension(configs), /unsupported|configurations/);

  const other = Buffer.from(answer);
  other[10] = (other[10] ?? 0) ^ 1;
  const refused = new EchAttempt(hello.hidden ?? assert.fail());
  assert.equal(refused.settle(other, AES_128), false);
  refused.takeExtension(configs);
  assert.deepEqual(refused.rejection?.retryConfigs, configs);
  assert.throws(() => refused.takeExtension(configs.subarray(1)), TlsFault);
});

test("a HelloRetryRequest confirms in its extension, and the answer behind it must do so, too", () => {
  const hello = hide();
  const { message, random } = hello.hidden ?? assert.fail();
  const request = encodeServerHello({
    random: RETRY_RANDOM,
    sessionId: Buffer.alloc(32),
    suite: AES_128.id,
    extensions: new Map([
      [43, Buffer.from("0304", "hex")],
      [EXTENSION.encryptedClientHello, Buffer.alloc(8)],
    ]),
  });
  const transcript = new Transcript();
  transcript.add(message);
  transcript.restart(AES_128);
  const confirmed = { suite: AES_128, random, transcript, isRetry: true };
  confirmationIn(request, true)?.set(makeConfirmation(request, confirmed));
  const retry = { share: null, cookie: Buffer.from("0001aa", "hex") };
  const attempt = new EchAttempt(hello.hidden ?? assert.fail());
  assert.notEqual(attempt.retry(request, AES_128, hello, retry).hidden, undefined);
  const wrong = encodeServerHello({
    random,
    sessionId: Buffer.alloc(32),
    suite: AES_128.id,
    extensions: new Map(),
  });
  assert.throws(() => attempt.settle(wrong, AES_128), /not the second/);

  const without = new EchAttempt(hello.hidden ?? assert.fail());
  request.fill(0, request.length - 8);
  assert.equal(without.retry(request, AES_128, hello, retry).hidden, undefined);
  assert.equal(without.settle(wrong, AES_128), false);
  assert.equal(without.rejection?.retryConfigs, null);
});

test("a hello that was changed or cut in any place is not opened, or is refused", () => {
  const { message } = hide();
  const open = (bytes: Buffer): Buffer | null => new EchAcceptor(keys).open(bytes);
  for (let at = 6; at < message.length; at += 3) {
    const changed = Buffer.from(message);
    changed[at] = (changed[at] ?? 0) ^ 0x55;
    try {
      assert.equal(open(changed), null, `byte ${at}`);
    } catch (error) {
      assert.ok(error instanceof TlsFault, String(error));
    }
  }
  for (let size = 4; size < message.length; size += 7)
    assert.throws(() => open(message.subarray(0, size)), TlsFault);
});

test("hidden hellos that break a rule are refused", () => {
  const outer = decodeClientHello(hide().message.subarray(4));
  const types = [...outer.extensions.keys()].filter((type) => type !== EXTENSION.encryptedClientHello);
  const make = (...extensions: string[]): Buffer => {
    const list = vector16(...extensions.map((text) => Buffer.from(text.replaceAll(" ", ""), "hex")));
    return Buffer.concat([Buffer.from(`0303${"11".repeat(32)}00000213010100`, "hex"), list]);
  };
  const [ech, versions] = ["fe0d 0001 01", "002b 0003 02 0304"];
  const list = (...of: number[]): string => {
    const text = of.map((type) => type.toString(16).padStart(4, "0")).join("");
    return `fd00 ${(of.length * 2 + 1).toString(16).padStart(4, "0")} ${(of.length * 2).toString(16).padStart(2, "0")}${text}`;
  };
  const [first = 0, second = 0] = types.filter((type) => type !== 0x2b);
  assert.equal(unpackInner(make(ech, versions, list(first, second)), outer).extensions.size, 4);
  const padded = Buffer.concat([make(ech, versions), Buffer.alloc(40)]);
  assert.equal(unpackInner(padded, outer).extensions.size, 2);
  padded[padded.length - 3] = 1;
  const bad: readonly Buffer[] = [
    padded,
    make(versions),
    make(ech),
    make("fe0d 0001 00", versions),
    make(ech, "002b 0003 02 0303"),
    make(ech, "002b 0005 04 0304 0303"),
    make(ech, versions, list(second, first)),
    make(ech, versions, list(first, first)),
    make(ech, versions, list(0xfe0d)),
    make(ech, versions, list(0x1234)),
    make(ech, versions, "fd00 0001 00"),
    make(ech, versions, list(0x2b)),
    make(ech, versions, ech),
  ];
  for (const [at, bytes] of bad.entries()) assert.throws(() => unpackInner(bytes, outer), TlsFault, `${at}`);
  const good = make(ech, versions, list(first, second));
  for (let size = 0; size < good.length; size++)
    assert.throws(() => unpackInner(good.subarray(0, size), outer), TlsFault, `${size} bytes`);
});

test("the extension: every cut is refused, random bytes never more than that", () => {
  const ech = { aead: 1, configId: 9, enc: randomBytes(32), payload: randomBytes(48) };
  const bytes = encodeOuterEch(ech);
  assert.deepEqual(decodeEch(bytes), { kdf: 1, ...ech });
  assert.equal(decodeEch(Buffer.of(1)), null);
  for (let size = 0; size < bytes.length; size++)
    assert.throws(() => decodeEch(bytes.subarray(0, size)), TlsFault);
  for (let left = 500; left > 0; left--) {
    const noise = randomBytes(left % 80);
    for (const run of [() => decodeEch(noise), () => readEchConfigs(noise)])
      try {
        run();
      } catch (error) {
        assert.ok(error instanceof TlsFault, String(error));
      }
  }
});
