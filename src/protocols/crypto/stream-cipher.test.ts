import assert from "node:assert/strict";
import { test } from "node:test";
import { rc4 } from "./rc4.ts";
import { ivBytesOf, openStreamCipher, STREAM_CIPHER_NAMES, type StreamCipherName } from "./stream-cipher.ts";

const hex = (text: string) => Buffer.from(text, "hex");
const AES_PLAIN = "6bc1bee22e409f96e93d7e117393172a";
const CFB_IV = "000102030405060708090a0b0c0d0e0f";
const CTR_IV = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
const AES_KEYS: Readonly<Record<number, string>> = {
  128: "2b7e151628aed2a6abf7158809cf4f3c",
  192: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
  256: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
};

type Vector = readonly [
  source: string,
  name: StreamCipherName,
  key: string,
  iv: string,
  plain: string,
  out: string,
];
const aes = (bits: 128 | 192 | 256, mode: "cfb" | "ctr", out: string): Vector => [
  "NIST SP 800-38A F.3, F.5",
  `aes-${bits}-${mode}`,
  AES_KEYS[bits] ?? "",
  mode === "cfb" ? CFB_IV : CTR_IV,
  AES_PLAIN,
  out,
];
const ZERO_KEY = "00".repeat(32);
const VECTORS: readonly Vector[] = [
  aes(128, "cfb", "3b3fd92eb72dad20333449f8e83cfb4a"),
  aes(192, "cfb", "cdc80d6fddf18cab34c25909c99a4174"),
  aes(256, "cfb", "dc7e84bfda79164b7ecd8486985d3860"),
  aes(128, "ctr", "874d6191b620e3261bef6864990db6ce"),
  aes(192, "ctr", "1abc932417521ca24f2b0459fe7e6e0b"),
  aes(256, "ctr", "601ec313775789a5b7a7f504bbf3d228"),
  [
    "RFC 8439 A.1, vector 5",
    "chacha20-ietf",
    ZERO_KEY,
    `${"00".repeat(11)}02`,
    "00".repeat(32),
    "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7",
  ],
  [
    "draft-agl-tls-chacha20poly1305 §7",
    "chacha20",
    ZERO_KEY,
    `${"00".repeat(7)}01`,
    "00".repeat(32),
    "de9cba7bf3d69ef5e786dc63973f653a0b49e015adbff7134fcb7df137821031",
  ],
  [
    "draft-irtf-cfrg-xchacha A.3.2, its first block",
    "xchacha20",
    "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
    "404142434445464748494a4b4c4d4e4f5051525354555658",
    Buffer.from("The dhole (prono").toString("hex"),
    "4559abba4e48c16102e8bb2c05e6947f",
  ],
];

for (const [source, name, key, iv, plain, out] of VECTORS)
  test(`${name}: ${source}`, () => {
    assert.equal(openStreamCipher(name, hex(key), hex(iv), "seal")(hex(plain)).toString("hex"), out);
    assert.equal(openStreamCipher(name, hex(key), hex(iv), "open")(hex(out)).toString("hex"), plain);
  });

test("RC4: values that its first publication gave, and RFC 6229", () => {
  const sealed = (key: Uint8Array, plain: Uint8Array) => rc4(key)(plain).toString("hex");
  assert.equal(sealed(Buffer.from("Key"), Buffer.from("Plaintext")), "bbf316e8d940af0ad3");
  assert.equal(sealed(Buffer.from("Wiki"), Buffer.from("pedia")), "1021bf0420");
  assert.equal(
    sealed(hex("0102030405060708090a0b0c0d0e0f10"), Buffer.alloc(16)),
    "9ac7cc9a609d1ef7b2932899cde41b97",
  );
});

test("every cipher goes on where it stopped, whatever the pieces are", () => {
  for (const name of STREAM_CIPHER_NAMES) {
    const bits = /aes-(\d+)/.exec(name)?.[1];
    const key = Buffer.alloc(bits === undefined ? (name === "rc4-md5" ? 16 : 32) : Number(bits) / 8, 7);
    const iv = Buffer.alloc(ivBytesOf(name), 9);
    const plain = Buffer.alloc(3000, "some text");
    const whole = openStreamCipher(name, key, iv, "seal")(plain);
    const opener = openStreamCipher(name, key, iv, "open");
    const pieces: Buffer[] = [];
    for (let at = 0, size = 1; at < whole.length; at += size++)
      pieces.push(opener(whole.subarray(at, at + size)));
    assert.ok(Buffer.concat(pieces).equals(plain), name);
    assert.ok(!whole.equals(plain), name);
  }
});
