import assert from "node:assert/strict";
import { createDecipheriv, createSecretKey, type CipherGCMTypes, createCipheriv } from "node:crypto";
import { describe, test } from "node:test";
import fc from "fast-check";
import { keepAead, type KeptAead, type KeptAeadName, KEPT_AEAD_NAMES } from "./aead.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const SKIP = process.platform === "linux" ? false : "SKIP libcrypto by FFI: only on Linux";
const KEY = hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
const keyOf = (name: KeptAeadName) =>
  KEY.subarray(0, name === "aes-128-gcm" ? 16 : name === "aes-192-gcm" ? 24 : 32);
const kept = (name: KeptAeadName, key: Uint8Array = keyOf(name)): KeptAead => {
  const aead = keepAead(name, key);
  assert.ok(aead !== null, "this runtime's libcrypto lends no EVP");
  return aead;
};

function seal(aead: KeptAead, nonce: Uint8Array, plain: Uint8Array, aad?: Uint8Array): Buffer {
  const out = Buffer.alloc(plain.length + 16);
  assert.equal(aead.sealInto(out, 0, nonce, plain, aad), out.length);
  return out;
}

function byCrypto(name: KeptAeadName, nonce: Uint8Array, plain: Uint8Array, aad: Uint8Array): Buffer {
  const cipher = createCipheriv(name as CipherGCMTypes, keyOf(name), nonce, { authTagLength: 16 });
  cipher.setAAD(aad);
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

describe("libcrypto by FFI", { skip: SKIP }, () => {
  test("AES-GCM: test case 4 of the GCM specification", () => {
    using aead = kept("aes-128-gcm", hex("feffe9928665731c6d6a8f9467308308"));
    const plain = hex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    );
    const aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    const sealed = seal(aead, hex("cafebabefacedbaddecaf888"), plain, aad);
    assert.equal(sealed.subarray(-16).toString("hex"), "5bc94fbc3221a5db94fae95ae7121a47");
  });

  test("ChaCha20-Poly1305: the vector of RFC 8439 §2.8.2", () => {
    using aead = kept("chacha20-poly1305");
    const plain = Buffer.from(
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
    );
    const sealed = seal(aead, hex("070000004041424344454647"), plain, hex("50515253c0c1c2c3c4c5c6c7"));
    assert.equal(sealed.subarray(0, 16).toString("hex"), "d31a8d34648e60db7b86afbc53ef7ec2");
    assert.equal(sealed.subarray(-16).toString("hex"), "1ae10b594f09e26a7e902ecbd0600691");
  });

  for (const name of KEPT_AEAD_NAMES)
    test(`${name}: does what node:crypto does, message after message under one key`, () => {
      using aead = kept(name);
      const bytes = fc.uint8Array({ maxLength: 300 });
      const nonces = fc.uint8Array({ minLength: 12, maxLength: 12 });
      const spoilt = fc.option(fc.nat());
      fc.assert(
        fc.property(nonces, bytes, bytes, spoilt, fc.nat(9), (nonce, plain, aad, spoil, at) => {
          const sealed = seal(aead, nonce, plain, aad);
          assert.deepEqual(sealed, byCrypto(name, nonce, plain, aad));
          if (spoil !== null) {
            const bit = spoil % (sealed.length * 8);
            sealed[bit >> 3] = (sealed[bit >> 3] as number) ^ (1 << (bit & 7));
          }
          const out = Buffer.alloc(at + plain.length, 9);
          const end = aead.openInto(out, at, nonce, sealed, aad);
          assert.equal(end, spoil === null ? out.length : -1);
          assert.deepEqual(
            [...out],
            [...Buffer.alloc(at, 9), ...(spoil === null ? plain : Buffer.alloc(plain.length))],
          );
        }),
      );
    });

  test("a wrong tag leaves no error behind for node:crypto to find", () => {
    using aead = kept("aes-256-gcm");
    assert.equal(aead.openInto(Buffer.alloc(1), 0, Buffer.alloc(12), Buffer.alloc(17)), -1);
    assert.equal(aead.openInto(Buffer.alloc(1), 0, Buffer.alloc(12), Buffer.alloc(15)), -1);
    assert.throws(() => createDecipheriv("aes-256-gcm", createSecretKey(Buffer.alloc(7)), Buffer.alloc(12)), {
      code: "ERR_CRYPTO_INVALID_KEYLEN",
    });
  });

  test("nothing is read or written past an end", () => {
    using aead = kept("aes-128-gcm");
    const nonce = Buffer.alloc(12);
    const sealed = seal(aead, nonce, Buffer.from("abc"));
    assert.throws(() => aead.sealInto(Buffer.alloc(18), 0, nonce, Buffer.alloc(3)), RangeError);
    assert.throws(() => aead.sealInto(Buffer.alloc(19), 1, nonce, Buffer.alloc(3)), RangeError);
    assert.throws(() => aead.sealInto(Buffer.alloc(19), -1, nonce, Buffer.alloc(3)), RangeError);
    assert.throws(() => aead.openInto(Buffer.alloc(2), 0, nonce, sealed), RangeError);
    assert.throws(() => aead.openInto(Buffer.alloc(3), NaN, nonce, sealed), RangeError);
    assert.throws(() => aead.sealInto(Buffer.alloc(19), 0, Buffer.alloc(11), Buffer.alloc(3)), RangeError);
    assert.throws(() => keepAead("aes-256-gcm", Buffer.alloc(31)), RangeError);
  });

  test("what was disposed of throws, used or not, and may be disposed of again", () => {
    for (const used of [true, false]) {
      const aead = kept("chacha20-poly1305");
      if (used) seal(aead, Buffer.alloc(12), Buffer.from("abc"));
      aead[Symbol.dispose]();
      aead[Symbol.dispose]();
      assert.throws(() => seal(aead, Buffer.alloc(12), Buffer.from("abc")), /closed/);
      assert.throws(() => aead.openInto(Buffer.alloc(9), 0, Buffer.alloc(12), Buffer.alloc(17)), /closed/);
    }
  });
});
