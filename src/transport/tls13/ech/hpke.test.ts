import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { TlsFault } from "#transport/tls13/alerts.ts";
import { x25519PrivateKey, x25519PublicBytes } from "#transport/tls13/key-exchange.ts";
import { HpkeContext, hpkeAead, hpkeRecipient, hpkeSender } from "./hpke.ts";

const hex = (text: string): Buffer => Buffer.from(text, "hex");
const INFO = hex("4f6465206f6e2061204772656369616e2055726e");

/** Base mode of RFC 9180 §A.1, §A.2 and its test vectors for AES-256-GCM; `digest`: of 1000 sealed messages. */
const VECTORS = [
  {
    aead: 1,
    privateKey: "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8",
    publicKey: "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d",
    enc: "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
    digest: "dcabb32ad8e8acea785275323395abd0",
  },
  {
    aead: 2,
    privateKey: "497b4502664cfea5d5af0b39934dac72242a74f8480451e1aee7d6a53320333d",
    publicKey: "430f4b9859665145a6b1ba274024487bd66f03a2dd577d7753c68d7d7d00c00c",
    enc: "6c93e09869df3402d7bf231bf540fadd35cd56be14f97178f0954db94b7fc256",
    digest: "1702e73e1e71705faa8241022af1deea",
  },
  {
    aead: 3,
    privateKey: "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb",
    publicKey: "4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a",
    enc: "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a",
    digest: "225fb3d35da3bb25e4371bcee4273502",
  },
];

/** Inputs as the vectors draw them: SHAKE128 of nothing, each with its length in one byte. */
function* inputs(): Generator<Buffer> {
  const stream = createHash("shake128", { outputLength: 2 ** 20 }).digest();
  for (let at = 0; ;) {
    const size = stream[at] ?? assert.fail();
    yield stream.subarray(at + 1, at + 1 + size);
    at += 1 + size;
  }
}

for (const { aead, privateKey, publicKey, enc, digest } of VECTORS)
  test(`a thousand messages of the vectors, AEAD ${aead}`, () => {
    const key = x25519PrivateKey(hex(privateKey));
    assert.deepEqual(x25519PublicBytes(key), hex(publicKey));
    const [sealing, opening] = [0, 1].map(() => hpkeRecipient(key, hex(enc), aead, INFO));
    assert.ok(sealing !== undefined && opening !== undefined);
    const sealed = createHash("shake128", { outputLength: 16 });
    const drawn = inputs();
    const next = (): Buffer => drawn.next().value ?? assert.fail();
    for (let left = 1000; left > 0; left--) {
      const [aad, plain] = [next(), next()];
      const message: Buffer = sealing.seal(plain, aad);
      sealed.update(message);
      assert.deepEqual(opening.open(message, aad), plain);
    }
    assert.equal(sealed.digest("hex"), digest);
  });

test("the first message of RFC 9180 §A.1.1.1, and what a sender seals for that key", () => {
  const [{ privateKey, enc: known } = assert.fail()] = VECTORS;
  const key = x25519PrivateKey(hex(privateKey));
  const [plain, aad] = [Buffer.from("Beauty is truth, truth beauty"), Buffer.from("Count-0")];
  assert.equal(
    hpkeRecipient(key, hex(known), 1, INFO).seal(plain, aad).toString("hex"),
    "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a",
  );
  const { enc, context } = hpkeSender(x25519PublicBytes(key), 1, INFO);
  assert.deepEqual(hpkeRecipient(key, enc, 1, INFO).open(context.seal(plain, aad), aad), plain);
});

test("what was changed, cut or sealed for another is not opened", () => {
  const key = x25519PrivateKey(Buffer.alloc(32, 7));
  const aad = Buffer.from("aad");
  const { enc, context } = hpkeSender(x25519PublicBytes(key), 3, INFO);
  const message = context.seal(Buffer.from("hidden"), aad);
  const open = (sealed: Buffer, data = aad, info = INFO): Buffer | null =>
    hpkeRecipient(key, enc, 3, info).open(sealed, data);
  assert.equal(String(open(message)), "hidden");
  for (let at = 0; at < message.length; at++) {
    const changed = Buffer.from(message);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.equal(open(changed), null);
    assert.equal(open(message.subarray(0, at)), null);
  }
  assert.equal(open(message, Buffer.from("other")), null);
  assert.equal(open(message, aad, Buffer.from("other")), null);
});

test("keys that are none are refused", () => {
  const key = x25519PrivateKey(Buffer.alloc(32, 7));
  assert.throws(() => hpkeSender(Buffer.alloc(31), 1, INFO), TlsFault);
  assert.throws(() => hpkeSender(Buffer.alloc(32), 1, INFO), TlsFault, "a secret of zeros");
  assert.throws(() => hpkeRecipient(key, Buffer.alloc(0), 1, INFO), TlsFault);
  assert.equal(hpkeAead(0xffff), null);
  assert.throws(() => new HpkeContext(4, Buffer.alloc(32), INFO));
});
