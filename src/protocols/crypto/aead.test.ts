import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AEAD_NAMES,
  createAead,
  incrementNonce,
  oneByOne,
  openAead,
  openSingle,
  seal,
  sealSingle,
} from "./aead.ts";
import { hchacha20 } from "./hchacha20.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const KEY = hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");

test("HChaCha20: the vector of draft-irtf-cfrg-xchacha §2.2.1", () => {
  const subkey = hchacha20(KEY, hex("000000090000004a0000000031415927"));
  assert.equal(
    Buffer.from(subkey).toString("hex"),
    "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc",
  );
});

test("XChaCha20-Poly1305: the vector of draft-irtf-cfrg-xchacha A.3.1", () => {
  const key = hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
  const nonce = hex("404142434445464748494a4b4c4d4e4f5051525354555657");
  const aad = hex("50515253c0c1c2c3c4c5c6c7");
  const plain = Buffer.from(
    "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
  );
  const sealed = seal(createAead("xchacha20-poly1305", key), nonce, plain, aad);
  assert.equal(sealed.subarray(-16).toString("hex"), "c0875924c1c7987947deafd8780acf49");
  assert.equal(sealed.subarray(0, 16).toString("hex"), "bd6d179d3e83d43b9576579493c0e939");
});

test("AES-GCM: test case 4 of the GCM specification", () => {
  const sealed = seal(
    createAead("aes-128-gcm", hex("feffe9928665731c6d6a8f9467308308")),
    hex("cafebabefacedbaddecaf888"),
    hex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    ),
    hex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
  );
  assert.equal(sealed.subarray(-16).toString("hex"), "5bc94fbc3221a5db94fae95ae7121a47");
});

for (const name of AEAD_NAMES) {
  test(`${name}: opens what it sealed, refuses any changed bit`, () => {
    const keyBytes = name === "aes-128-gcm" ? 16 : name === "aes-192-gcm" ? 24 : 32;
    const aead = createAead(name, KEY.subarray(0, keyBytes));
    const nonce = Buffer.alloc(aead.nonceBytes, 7);
    const sealed = seal(aead, nonce, Buffer.from("abc"));
    assert.equal(aead.open(nonce, sealed)?.toString(), "abc");
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      assert.equal(aead.open(nonce, changed), null);
    }
    assert.equal(aead.open(nonce, sealed.subarray(0, 15)), null);
    assert.equal(aead.open(nonce, sealed, Buffer.from("x")), null);
  });
}

for (const name of AEAD_NAMES) {
  test(`${name}: for many messages, the same bytes with and without the runtime's contexts`, () => {
    const key = KEY.subarray(0, name === "aes-128-gcm" ? 16 : name === "aes-192-gcm" ? 24 : 32);
    const single = createAead(name, key);
    for (const aead of [openAead(name, key), oneByOne(single)]) {
      const nonce = Buffer.alloc(aead.nonceBytes);
      for (const size of [0, 1, 2, 16, 1400, 16_383]) {
        const [plain, out, back] = [
          Buffer.alloc(size, 5),
          Buffer.alloc(3 + size + 16),
          Buffer.alloc(size + 1),
        ];
        assert.equal(aead.sealInto(out, 3, nonce, plain), out.length);
        assert.deepEqual(out.subarray(3), seal(single, nonce, plain));
        assert.equal(aead.openInto(back, 1, nonce, out.subarray(3)), back.length);
        assert.deepEqual(back.subarray(1), plain);
        incrementNonce(nonce);
        assert.equal(aead.openInto(back, 1, nonce, out.subarray(3)), -1);
      }
      aead[Symbol.dispose]();
    }
  });
}

test("the counter nonce carries", () => {
  const nonce = Buffer.from([0xff, 0xff, 0]);
  incrementNonce(nonce);
  assert.deepEqual([...nonce], [0, 0, 1]);
});

test("messages with a key of their own are sealed and opened as others are, also behind one that was refused", () => {
  const nonce = Buffer.alloc(12, 7);
  for (const name of AEAD_NAMES.filter((one) => one !== "xchacha20-poly1305"))
    for (const fill of [1, 2, 3]) {
      const size = { "aes-128-gcm": 16, "aes-192-gcm": 24 }[name as string] ?? 32;
      const [key, plain, aad] = [
        Buffer.alloc(size, fill),
        Buffer.alloc(fill * 20, fill),
        Buffer.alloc(5, fill),
      ];
      const out = Buffer.alloc(plain.length + 20);
      assert.equal(sealSingle(name, { key, nonce, aad }, plain, out, 4), out.length);
      const sealed = out.subarray(4);
      assert.deepEqual(sealed, seal(createAead(name, key), nonce, plain, aad));
      const changed = Buffer.from(sealed);
      changed[3] = (changed[3] ?? 0) ^ 1;
      assert.equal(openSingle(name, { key, nonce, aad }, changed), null);
      assert.equal(openSingle(name, { key, nonce }, sealed), null);
      assert.equal(openSingle(name, { key, nonce, aad }, sealed.subarray(0, 15)), null);
      assert.deepEqual(openSingle(name, { key, nonce, aad }, sealed), plain);
      assert.throws(() => sealSingle(name, { key: key.subarray(1), nonce }, plain, out, 0), RangeError);
    }
});
