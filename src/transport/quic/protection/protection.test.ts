/** The vectors of RFC 9001 appendix A. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { quicLibrary } from "#platform/quic.ts";
import { ApplicationKeys } from "./application-keys.ts";
import { deriveKeys, initialSecret, nextSecret } from "./key-schedule.ts";
import { isRetryAuthentic, retryTag } from "./retry-tag.ts";

const hex = (text: string) => Buffer.from(text, "hex");
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const SKIP = process.platform === "linux" ? false : "SKIP libcrypto by FFI: only on Linux";
const DESTINATION = hex("8394c8f03e515708");
const CHACHA = 0x1303;
const CHACHA_SECRET = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");

test("secrets and keys of Initial packets", () => {
  const client = initialSecret(DESTINATION, "client");
  assert.equal(textOf(client), "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea");
  const keys = deriveKeys(0x1301, client);
  assert.deepEqual([keys.key, keys.iv, keys.headerKey].map(textOf), [
    "1f369613dd76d5467730efcbe3b1a22d",
    "fa044b2f42a3fd3b46fb255c",
    "9f50449e04a0e810283a1e9933adedd2",
  ]);
  const server = deriveKeys(0x1301, initialSecret(DESTINATION, "server"));
  assert.deepEqual([server.key, server.iv, server.headerKey].map(textOf), [
    "cf3a5331653c364c88f0f379b6067e37",
    "0ac1493ca1905853b0bba03e",
    "c206b8d9b9f0f37644430b490eeaa314",
  ]);
});

test("keys of ChaCha20 and the secret of the next phase", () => {
  const keys = deriveKeys(CHACHA, CHACHA_SECRET);
  assert.deepEqual([keys.key, keys.iv, keys.headerKey].map(textOf), [
    "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8",
    "e0459b3474bdd0e44a41c144",
    "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4",
  ]);
  assert.equal(
    textOf(nextSecret(CHACHA, CHACHA_SECRET)),
    "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9",
  );
});

test("the tag of Retry", () => {
  const packet = hex("ff000000010008f067a5502a4262b5746f6b656e");
  assert.equal(textOf(retryTag(packet, DESTINATION)), "04a265ba2eff4d829058fb3f0f2496ba");
  const whole = Buffer.concat([packet, hex("04a265ba2eff4d829058fb3f0f2496ba")]);
  assert.ok(isRetryAuthentic(whole, DESTINATION));
  assert.ok(!isRetryAuthentic(whole, hex("8394c8f03e515709")));
  assert.ok(!isRetryAuthentic(packet.subarray(0, 10), DESTINATION));
});

describe("packets", { skip: SKIP }, () => {
  const open = () => {
    const ciphers = quicLibrary()?.ciphers ?? null;
    assert.ok(ciphers !== null, "this runtime's libcrypto lends no EVP");
    return ciphers;
  };

  test("the one of ChaCha20, both ways", () => {
    const ciphers = open();
    using seals = ciphers.make(CHACHA, deriveKeys(CHACHA, CHACHA_SECRET), true);
    using opens = ciphers.make(CHACHA, deriveKeys(CHACHA, CHACHA_SECRET), false);
    const memory = ciphers.allocate(64);
    memory.bytes.set(hex("4200bff401"));
    seals.seal(memory, 0, { headBytes: 4, numberBytes: 3, bodyBytes: 1 }, 654_360_564);
    const packet = Buffer.from(memory.bytes.subarray(0, 21));
    assert.equal(textOf(packet), "4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
    assert.equal(opens.unmask(memory, 21, 1), 0x42);
    assert.equal(textOf(memory.bytes.subarray(0, 4)), "4200bff4");
    assert.equal(opens.open(memory, 21, 4, 654_360_564), 1);
    assert.equal(memory.bytes[4], 1);
    memory.bytes.set(packet);
    assert.equal(opens.unmask(memory, 20, 1), -1, "too short for a sample");
    assert.equal(opens.unmask(memory, 21, 1), 0x42);
    memory.bytes[20] = 0;
    assert.equal(opens.open(memory, 21, 4, 654_360_564), -1, "a wrong tag");
    assert.equal(opens.open(memory, 19, 4, 654_360_564), -1, "too short for a tag");
  });

  test("the server's Initial of AES, and every suite with any packet", () => {
    const ciphers = open();
    using aes = ciphers.make(0x1301, deriveKeys(0x1301, initialSecret(DESTINATION, "server")), true);
    const memory = ciphers.allocate(2048);
    const head = hex("c1000000010008f067a5502a4262b50040750001");
    const body = hex(
      "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00020304",
    );
    memory.bytes.set(Buffer.concat([head, body]));
    aes.seal(memory, 0, { headBytes: head.length, numberBytes: 2, bodyBytes: body.length }, 1);
    assert.equal(
      textOf(memory.bytes.subarray(0, head.length)),
      "cf000000010008f067a5502a4262b5004075c0d9",
      "RFC 9001 appendix A.3",
    );
    for (const suite of [0x1301, 0x1302, 0x1303]) {
      const keys = deriveKeys(suite, Buffer.alloc(suite === 0x1302 ? 48 : 32, 7));
      using seals = ciphers.make(suite, keys, true);
      using opens = ciphers.make(suite, keys, false);
      fc.assert(
        fc.property(fc.uint8Array({ minLength: 3, maxLength: 1400 }), fc.maxSafeNat(), (plain, number) => {
          memory.bytes.set(hex("41aaaaaaaaaaaaaaaa"));
          memory.bytes[9] = (number % 65_536) >> 8;
          memory.bytes[10] = number % 256;
          memory.bytes.set(plain, 11);
          seals.seal(memory, 0, { headBytes: 11, numberBytes: 2, bodyBytes: plain.length }, number);
          const size = 11 + plain.length + 16;
          assert.equal(opens.unmask(memory, size, 9), 0x41);
          assert.equal(memory.bytes[9], (number % 65_536) >> 8);
          assert.equal(memory.bytes[10], number % 256);
          assert.equal(opens.open(memory, size, 11, number), plain.length);
          assert.deepEqual(memory.bytes.slice(11, 11 + plain.length), plain);
        }),
        { numRuns: 30 },
      );
    }
  });

  test("keys that were given up are not used, and wrong ones are refused", () => {
    const ciphers = open();
    const keys = deriveKeys(0x1301, Buffer.alloc(32));
    const gone = ciphers.make(0x1301, keys, true);
    gone[Symbol.dispose]();
    gone[Symbol.dispose]();
    const layout = { headBytes: 11, numberBytes: 2, bodyBytes: 20 };
    assert.throws(() => gone.seal(ciphers.allocate(64), 0, layout, 0));
    assert.throws(() => ciphers.make(0x1304, keys, true), RangeError);
    assert.throws(() => ciphers.make(0x1302, keys, true), RangeError);
  });

  test("the peer's next keys are made by the first packet that cannot be opened, and it is opened then", () => {
    const ciphers = open();
    const secret = Buffer.alloc(32, 9);
    using ours = new ApplicationKeys(ciphers);
    using theirs = new ApplicationKeys(ciphers);
    for (const keys of [ours, theirs]) for (const writes of [true, false]) keys.set(writes, 0x1301, secret);
    const layout = { headBytes: 11, numberBytes: 2, bodyBytes: 20 };
    const memory = ciphers.allocate(64);
    const opensOne = (number: number): boolean => {
      memory.bytes.fill(0);
      memory.bytes[0] = 0x41;
      theirs.seals?.seal(memory, 0, layout, number);
      ours.opens?.unmask(memory, 47, 9);
      const isOpen = (ours.opensOf(theirs.phase, number, 0)?.open(memory, 47, 11, number) ?? -1) === 20;
      if (isOpen) ours.onOpened(theirs.phase, number, 0, 1);
      else ours.onForged();
      return isOpen;
    };
    assert.ok(opensOne(0));
    theirs.allowUpdate();
    theirs.update(1, 1);
    assert.equal(theirs.phase, 1);
    assert.ok(!ours.hasNext);
    assert.ok(!opensOne(1));
    assert.equal(ours.phase, 0);
    assert.ok(ours.hasNext);
    assert.ok(opensOne(1));
    assert.equal(ours.phase, 1);
    theirs.update(10, 1);
    assert.ok(opensOne(3), "those behind them are made at once");
    assert.equal(ours.updates, 2);
  });
});
