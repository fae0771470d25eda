import assert from "node:assert/strict";
import { test } from "node:test";
import { ProtocolError } from "#core/errors.ts";
import { readAnswer } from "./ntp.ts";

const question = Buffer.from("23" + "00".repeat(39) + "0102030405060708", "hex");

function answer(change: (bytes: Buffer) => unknown = () => {}): Buffer {
  const bytes = Buffer.alloc(48);
  bytes[0] = (4 << 3) | 4;
  bytes[1] = 2;
  question.copy(bytes, 24, 40, 48);
  bytes.writeUInt32BE(2_208_988_800 + 1_000, 32);
  bytes.writeUInt32BE(2_208_988_800 + 1_001, 40);
  bytes.writeUInt32BE(0x8000_0000, 44);
  change(bytes);
  return bytes;
}

test("RFC 5905 §7.3: the answer's two times", () => {
  assert.deepEqual(readAnswer(answer(), question), { receivedAtMs: 1_000_000, answeredAtMs: 1_001_500 });
});

test("RFC 4330 §3: the second era", () => {
  const times = readAnswer(
    answer((bytes) => {
      bytes.writeUInt32BE(10, 32);
      bytes.writeUInt32BE(11, 40);
    }),
    question,
  );
  assert.equal(times?.receivedAtMs, Date.UTC(2036, 1, 7, 6, 28, 16) + 10_000);
});

test("what is no answer to this question is passed over", () => {
  assert.equal(
    readAnswer(
      answer((bytes) => void (bytes[24] = 0xff)),
      question,
    ),
    null,
  );
  assert.equal(
    readAnswer(
      answer((bytes) => void (bytes[0] = 0x23)),
      question,
    ),
    null,
  );
  for (let size = 0; size < 48; size++) assert.equal(readAnswer(answer().subarray(0, size), question), null);
});

test("a server without the time says so", () => {
  const kiss = answer((bytes) => {
    bytes[1] = 0;
    bytes.write("RATE", 12, "latin1");
  });
  assert.throws(() => readAnswer(kiss, question), new ProtocolError("the time server refuses (RATE)"));
  const changes: ((bytes: Buffer) => unknown)[] = [
    (bytes) => (bytes[0] = 0xe4),
    (bytes) => (bytes[1] = 16),
    (bytes) => bytes.fill(0, 32, 40),
    (bytes) => bytes.fill(0, 40, 48),
  ];
  for (const change of changes)
    assert.throws(() => readAnswer(answer(change), question), /does not know the time/);
});
