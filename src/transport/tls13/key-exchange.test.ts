import assert from "node:assert/strict";
import {
  createPublicKey,
  decapsulate,
  diffieHellman,
  encapsulate,
  generateKeyPairSync,
  type KeyObject,
} from "node:crypto";
import { test } from "node:test";
import { TlsFault } from "./alerts.ts";
import { answerKeyShare, GROUP, openKeyShare } from "./key-exchange.ts";

const GROUPS = Object.entries(GROUP);

function open(group: number) {
  return openKeyShare(group) ?? assert.fail(`group ${group} is not built`);
}

const isRefused = (error: unknown): boolean =>
  error instanceof TlsFault && error.alert === "illegal_parameter";

for (const [name, group] of GROUPS)
  test(`${name}: both sides have the same secret, another pair has another`, () => {
    using share = open(group);
    const answer = answerKeyShare(group, share.share) ?? assert.fail();
    const secret = share.finish(answer.share);
    assert.deepEqual(secret, answer.secret);
    assert.notDeepEqual(answerKeyShare(group, share.share)?.secret, secret);
    using other = open(group);
    assert.notDeepEqual(other.share, share.share);
    if (group === GROUP.x25519 || group === GROUP.x25519MlKem768)
      assert.notDeepEqual(other.finish(answer.share), secret);
  });

for (const [name, group] of GROUPS)
  test(`${name}: halves that are cut, too long or all zero are refused`, () => {
    using share = open(group);
    const answer = answerKeyShare(group, share.share)?.share ?? assert.fail();
    for (const bad of [
      answer.subarray(1),
      Buffer.concat([answer, Buffer.of(0)]),
      Buffer.alloc(0),
      Buffer.alloc(32),
      Buffer.alloc(answer.length),
    ])
      assert.throws(() => share.finish(bad), isRefused, `${bad.length} bytes from the server`);
    for (const bad of [share.share.subarray(1), Buffer.alloc(0), Buffer.alloc(share.share.length)])
      assert.throws(() => answerKeyShare(group, bad), isRefused, `${bad.length} bytes from the client`);
    assert.deepEqual(share.finish(answer).length > 0, true, "a refusal leaves the key as it is");
  });

const publicKey = (asymmetricKeyType: "x25519" | "ml-kem-768", key: Buffer): KeyObject =>
  createPublicKey({ key, format: "raw-public", asymmetricKeyType });
const rawOf = (key: KeyObject): Buffer => key.export({ format: "raw-public" });

test("X25519 by the library agrees with that of node:crypto", () => {
  using share = open(GROUP.x25519);
  const pair = generateKeyPairSync("x25519");
  const expected = diffieHellman({
    privateKey: pair.privateKey,
    publicKey: publicKey("x25519", share.share),
  });
  assert.deepEqual(share.finish(rawOf(pair.publicKey)), expected);
  assert.deepEqual(share.agreeX25519?.(rawOf(pair.publicKey)), expected);
});

test("X25519MLKEM768: the ML-KEM half first, on both sides, as node:crypto computes the halves", () => {
  using share = open(GROUP.x25519MlKem768);
  const [kem, curve] = [share.share.subarray(0, 1184), share.share.subarray(1184)];
  const pair = generateKeyPairSync("x25519");
  const { ciphertext, sharedKey } = encapsulate(publicKey("ml-kem-768", kem));
  const inner = diffieHellman({ privateKey: pair.privateKey, publicKey: publicKey("x25519", curve) });
  assert.deepEqual(
    share.finish(Buffer.concat([ciphertext, rawOf(pair.publicKey)])),
    Buffer.concat([sharedKey, inner]),
  );

  const kemPair = generateKeyPairSync("ml-kem-768");
  const client = Buffer.concat([rawOf(kemPair.publicKey), rawOf(pair.publicKey)]);
  const answer = answerKeyShare(GROUP.x25519MlKem768, client) ?? assert.fail();
  const outer = publicKey("x25519", answer.share.subarray(1088));
  assert.deepEqual(
    answer.secret,
    Buffer.concat([
      decapsulate(kemPair.privateKey, answer.share.subarray(0, 1088)),
      diffieHellman({ privateKey: pair.privateKey, publicKey: outer }),
    ]),
  );
});
