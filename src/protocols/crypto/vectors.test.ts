/** Every primitive that protocols and carriers call, against values that others have published. */
import assert from "node:assert/strict";
import { createHash, createHmac, hkdfSync } from "node:crypto";
import { describe, test } from "node:test";
import { crc32 } from "node:zlib";
import { blake3 } from "@noble/hashes/blake3.js";
import { shake128 } from "@noble/hashes/sha3.js";
import { passwordHash } from "#protocols/anytls/wire.ts";
import { decryptBlock, encryptBlock } from "#protocols/shadowsocks/identity.ts";
import { findMethod, keyName, masterKey, type Method } from "#protocols/shadowsocks/methods.ts";
import { keyOf } from "#protocols/trojan/wire.ts";
import { fnv1a } from "#protocols/vmess/header.ts";
import { kdf } from "#protocols/vmess/kdf.ts";
import { type AeadName, createAead, openAead, seal } from "./aead.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(/\s/g, ""), "hex");
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const range = (size: number, first = 0) => Buffer.from(Array.from({ length: size }, (_, at) => first + at));

interface Sealed {
  readonly source: string;
  readonly name: AeadName;
  readonly key: Buffer;
  readonly nonce: Buffer;
  readonly aad: Buffer;
  readonly plain: Buffer;
  /** Ciphertext and tag. */
  readonly sealed: Buffer;
}

// The specification has one key for all sizes, cut to each.
const GCM_KEY = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
const GCM_PLAIN = hex(
  "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" +
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
);
const gcm = (testCase: number, keyBytes: 16 | 24 | 32, isZero: boolean, sealed: string): Sealed => ({
  source: `McGrew and Viega, The Galois/Counter Mode of Operation, test case ${testCase}`,
  name: `aes-${(keyBytes * 8) as 128 | 192 | 256}-gcm`,
  key: isZero ? Buffer.alloc(keyBytes) : GCM_KEY.subarray(0, keyBytes),
  nonce: isZero ? Buffer.alloc(12) : hex("cafebabefacedbaddecaf888"),
  aad: isZero ? Buffer.alloc(0) : hex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
  plain: isZero ? Buffer.alloc(16) : GCM_PLAIN,
  sealed: hex(sealed),
});

const SEALED: readonly Sealed[] = [
  gcm(2, 16, true, "0388dace60b6a392f328c2b971b2fe78 ab6e47d42cec13bdf53a67b21257bddf"),
  gcm(
    4,
    16,
    false,
    `42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
     21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091 5bc94fbc3221a5db94fae95ae7121a47`,
  ),
  gcm(8, 24, true, "98e7247c07f0fe411c267e4384b0f600 2ff58d80033927ab8ef4d4587514f0fb"),
  gcm(
    10,
    24,
    false,
    `3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c
     7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710 2519498e80f1478f37ba55bd6d27618c`,
  ),
  gcm(14, 32, true, "cea7403d4d606b6e074ec5d3baf39d18 d0d1c8a799996bf0265b98b5d48ab919"),
  gcm(
    16,
    32,
    false,
    `522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
     8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662 76fc6ece0f4e1768cddf8853bb2d551b`,
  ),
  {
    source: "RFC 8439 §2.8.2",
    name: "chacha20-poly1305",
    key: range(32, 0x80),
    nonce: hex("070000004041424344454647"),
    aad: hex("50515253c0c1c2c3c4c5c6c7"),
    plain: Buffer.from(
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
    ),
    sealed: hex(
      `d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6
       3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36
       92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc
       3ff4def08e4b7a9de576d26586cec64b6116 1ae10b594f09e26a7e902ecbd0600691`,
    ),
  },
];

describe("AEAD", () => {
  for (const { source, name, key, nonce, aad, plain, sealed } of SEALED)
    test(`${name}: ${source}`, () => {
      const aead = createAead(name, key);
      assert.equal(hexOf(seal(aead, nonce, plain, aad)), hexOf(sealed));
      assert.deepEqual(aead.open(nonce, sealed, aad), plain);
      using kept = openAead(name, key); // libcrypto's own contexts, where the runtime lends them
      const out = Buffer.alloc(sealed.length);
      assert.equal(kept.sealInto(out, 0, nonce, plain, aad), sealed.length);
      assert.equal(hexOf(out), hexOf(sealed));
      assert.equal(kept.openInto(out, 0, nonce, sealed, aad), plain.length);
      assert.deepEqual(out.subarray(0, plain.length), plain);
    });
});

test("AES, one block: FIPS 197 C.1 and C.3", () => {
  const plain = hex("00112233445566778899aabbccddeeff");
  const blocks = [
    [range(16), "69c4e0d86a7b0430d8cdb78070b4c55a"],
    [range(32), "8ea2b7ca516745bfeafc49904b496089"],
  ] as const;
  for (const [key, sealed] of blocks) {
    assert.equal(hexOf(encryptBlock(key, plain)), sealed);
    assert.deepEqual(decryptBlock(key, hex(sealed)), plain);
  }
});

describe("hashes", () => {
  test("BLAKE3: test_vectors.json of its authors", () => {
    const input = (size: number) => Buffer.from(Array.from({ length: size }, (_, at) => at % 251));
    const context = Buffer.from("BLAKE3 2019-12-27 16:29:52 test vectors context");
    const published: readonly (readonly [number, string, string])[] = [
      [
        0,
        "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d",
      ],
      [
        1,
        "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
        "b3e2e340a117a499c6cf2398a19ee0d29cca2bb7404c73063382693bf66cb06c",
      ],
      [
        1024,
        "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
        "7356cd7720d5b66b6d0697eb3177d9f8d73a4a5c5e968896eb6a689684302706",
      ],
    ];
    for (const [size, hash, derived] of published) {
      assert.equal(hexOf(blake3(input(size))), hash);
      assert.equal(hexOf(keyName(input(size))), hash.slice(0, 32));
      assert.equal(hexOf(blake3(input(size), { context })), derived);
    }
  });

  test("SHAKE128: FIPS 202 examples, 0 and 1600 bits", () => {
    assert.equal(
      hexOf(shake128(Buffer.alloc(0), { dkLen: 32 })),
      "7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef26",
    );
    const xof = shake128.create().update(Buffer.alloc(200, 0xa3));
    const pieces = [xof.xof(2), xof.xof(30)]; // as chunk sizes are masked: a little at a time
    assert.equal(
      hexOf(Buffer.concat(pieces)),
      "131ab8d2b594946b9c81333f9bb6e0ce75c3b93104fa3469d3917457385da037",
    );
  });

  test("MD5: RFC 1321 A.5; SHA-1, SHA-224 and SHA-256: FIPS 180 'abc'", () => {
    const digest = (name: string, text: string) => createHash(name).update(text).digest("hex");
    assert.equal(digest("md5", "message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
    assert.equal(digest("sha1", "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert.equal(keyOf("abc"), "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7");
    assert.equal(
      hexOf(passwordHash("abc")),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
  });

  test("CRC-32: the check value of ITU-T V.42; FNV-1a: draft-eastlake-fnv, 32 bits", () => {
    assert.equal(crc32(Buffer.from("123456789")), 0xcbf43926);
    assert.equal(fnv1a(Buffer.from("")), 0x811c9dc5);
    assert.equal(fnv1a(Buffer.from("a")), 0xe40c292c);
    assert.equal(fnv1a(Buffer.from("foobar")), 0xbf9cf968);
  });
});

describe("keys", () => {
  test("HMAC-SHA-256: RFC 4231 §4.3; HKDF-SHA-1: RFC 5869 A.4", () => {
    const mac = createHmac("sha256", "Jefe").update("what do ya want for nothing?").digest("hex");
    assert.equal(mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    const okm = hkdfSync("sha1", Buffer.alloc(11, 0x0b), range(13), range(10, 0xf0), 42);
    assert.equal(
      hexOf(new Uint8Array(okm)),
      "085a01ea1b10f36933068b56efa5ad81a4f14b822f5b091568a9cdd4f155fda2c22e422478d305f3f896",
    );
  });

  test("EVP_BytesToKey: the value in the tests of shadowsocks-go", () => {
    const key = masterKey(findMethod("aes-256-gcm") as Method, "foobar");
    assert.equal(hexOf(key), "3858f62230ac3c915f300c664312c63f568378529614d22ddb49237d2f60bfdf");
  });

  test("VMess KDF: the value in the tests of v2ray-core", () => {
    const path = ["2", "3"].map((number) => Buffer.from(`Demo Path for KDF Value Test${number}`));
    assert.equal(
      hexOf(kdf(32, Buffer.from("Demo Key for KDF Value Test"), "Demo Path for KDF Value Test", ...path)),
      "53e9d7e1bd7bd25022b71ead07d8a596efc8a845c7888652fd684b4903dc8892",
    );
  });
});
