import assert from "node:assert/strict";
import { createPublicKey, createPrivateKey, randomBytes } from "node:crypto";
import { test } from "node:test";
import { decodeBech32 } from "#lib/bech32.ts";
import { openAge, isAge, readIdentities, readRecipient, sealAge } from "./age.ts";
import { BackupError } from "./sealing.ts";

const CHUNK = 64 * 1024;

function pair() {
  const identity = randomBytes(32);
  const key = createPrivateKey({ key: identity, format: "raw-private", asymmetricKeyType: "x25519" });
  return { identity, recipient: createPublicKey(key).export({ format: "raw-public" }) };
}

test("each recipient opens it, whatever its length is to that of a chunk; others do not", () => {
  const [one, two, other] = [pair(), pair(), pair()];
  for (const length of [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5]) {
    const contents = randomBytes(length);
    const file = sealAge(contents, [one.recipient, two.recipient]);
    assert.ok(isAge(file));
    for (const { identity } of [one, two])
      assert.deepEqual(openAge(file, [other.identity, identity]), contents);
    assert.throws(() => openAge(file, [other.identity]), /recipients whose key is not given/);
  }
});

test("cut anywhere, or with one changed byte, it is refused", () => {
  const { identity, recipient } = pair();
  const file = sealAge(randomBytes(CHUNK + 100), [recipient]);
  for (const length of [0, 10, 30, 100, 180, 200, 215, 216, 300, CHUNK, file.length - 101, file.length - 1])
    assert.throws(() => openAge(file.subarray(0, length), [identity]), BackupError, `${length}`);
  const head = file.indexOf("\n---") + 50;
  for (const at of [...Array(head).keys(), head + 10, head + 40, CHUNK, file.length - 1]) {
    const changed = Buffer.from(file);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.throws(() => openAge(changed, [identity]), BackupError, `${at}`);
  }
});

test("keys are read as age writes them, and a mistyped one is none", () => {
  // BIP 173 §"Test vectors": valid, and with a checksum of another text.
  assert.ok(decodeBech32("split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w", "split"));
  assert.equal(decodeBech32("split1checkupstagehandshakeupstreamerranterredcaperred2y9e2w", "split"), null);
  // C2SP age.md: a recipient.
  const recipient = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
  assert.equal(readRecipient(recipient)?.length, 32);
  assert.equal(readRecipient(recipient.toUpperCase())?.length, 32);
  for (const wrong of ["", "age1", recipient.slice(0, -1), recipient.replace("k", "l"), `${recipient}q`])
    assert.equal(readRecipient(wrong), null, wrong);
  assert.equal(readIdentities(""), null);
  assert.equal(readIdentities("# a comment\nnonsense\n"), null);
});
