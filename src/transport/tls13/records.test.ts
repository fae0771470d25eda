import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { ByteQueue } from "#lib/byte-queue.ts";
import { TlsFault } from "./alerts.ts";
import { cipherSuite, type CipherSuite } from "./cipher-suites.ts";
import { plainRecord, type RawRecord, RECORD, RecordOpener, RecordSealer, takeRecord } from "./records.ts";

const suites = [0x1301, 0x1302, 0x1303].map((id): CipherSuite => cipherSuite(id) ?? assert.fail());

function recordsIn(bytes: Buffer): RawRecord[] {
  const queue = new ByteQueue();
  queue.push(bytes);
  const records: RawRecord[] = [];
  for (let next = takeRecord(queue); next !== null; next = takeRecord(queue)) records.push(next);
  assert.equal(queue.length, 0);
  return records;
}

const alertOf = (alert: string) => (error: unknown) => error instanceof TlsFault && error.alert === alert;

for (const suite of suites)
  for (const portable of [false, true])
    test(`what is sealed opens, in any size, ${suite.aead}${portable ? " by node:crypto" : ""}`, () => {
      const secret = randomBytes(suite.hashBytes);
      using sealer = new RecordSealer(suite, secret, { portable });
      using opener = new RecordOpener(suite, secret, { portable: !portable });
      for (const size of [0, 1, 16_384, 16_385, 50_000]) {
        const content = randomBytes(size);
        const opened = recordsIn(sealer.seal(RECORD.applicationData, content)).map((one) => opener.open(one));
        assert.equal(opened.length, Math.max(1, Math.ceil(size / 16_384)));
        assert.deepEqual(Buffer.concat(opened.map((one) => one.content)), content);
        sealer.update();
        opener.update();
      }
    });

test("padding brings a record to a length, and is taken off", () => {
  const [suite = assert.fail()] = suites;
  const secret = randomBytes(32);
  using sealer = new RecordSealer(suite, secret);
  using opener = new RecordOpener(suite, secret);
  for (const [size, length] of [
    [0, 255],
    [36, 74],
    [100, 50],
  ] as const) {
    const sealed = sealer.seal(RECORD.handshake, Buffer.alloc(size, 7), length);
    assert.equal(sealed.length, Math.max(length, size + 22));
    const [record = assert.fail()] = recordsIn(sealed);
    assert.deepEqual(opener.open(record), { type: RECORD.handshake, content: Buffer.alloc(size, 7) });
  }
});

test("no record is longer than the peer takes", () => {
  const [suite = assert.fail()] = suites;
  using sealer = new RecordSealer(suite, randomBytes(32), { mostContent: 100 });
  const lengths = recordsIn(sealer.seal(RECORD.applicationData, Buffer.alloc(250))).map(
    (one) => one.body.length,
  );
  assert.deepEqual(lengths, [117, 117, 67]);
});

test("a record that was changed, repeated or left out is not authentic", () => {
  const [suite = assert.fail()] = suites;
  const secret = randomBytes(32);
  using sealer = new RecordSealer(suite, secret);
  const [first, second] = [sealer.seal(23, Buffer.from("one")), sealer.seal(23, Buffer.from("two"))];
  for (let at = 1; at < first.length; at++) {
    const changed = Buffer.from(first);
    changed[at] = (changed[at] ?? 0) ^ 1;
    using opener = new RecordOpener(suite, secret);
    const record = { type: 23, header: changed.subarray(0, 5), body: changed.subarray(5) };
    assert.throws(() => opener.open(record), alertOf("bad_record_mac"));
  }
  using opener = new RecordOpener(suite, secret);
  const [skipped = assert.fail()] = recordsIn(second);
  assert.throws(() => opener.open(skipped), alertOf("bad_record_mac"));
});

test("what is no record, or too long, is refused at its header", () => {
  const refused = (bytes: number[], alert: string): void => {
    const queue = new ByteQueue();
    queue.push(Buffer.from(bytes));
    assert.throws(() => takeRecord(queue), alertOf(alert));
  };
  refused([19, 3, 3, 0, 1], "unexpected_message");
  refused([24, 3, 3, 0, 1], "unexpected_message");
  refused([22, 4, 3, 0, 1], "unexpected_message");
  refused([...Buffer.from("HTTP/")], "unexpected_message");
  refused([23, 3, 3, 0x41, 0x01], "record_overflow");
  refused([22, 3, 3, 0x40, 0x01], "record_overflow");
});

test("every cut of a record waits for more", () => {
  const whole = plainRecord(RECORD.handshake, Buffer.from("content"));
  for (let end = 0; end < whole.length; end++) {
    const queue = new ByteQueue();
    queue.push(whole.subarray(0, end));
    assert.equal(takeRecord(queue), null);
  }
});

test("a record of padding alone, or without content, is refused", () => {
  const [suite = assert.fail()] = suites;
  const secret = randomBytes(32);
  using sealer = new RecordSealer(suite, secret);
  using opener = new RecordOpener(suite, secret);
  const [record = assert.fail()] = recordsIn(sealer.seal(0, Buffer.alloc(0), 100));
  assert.throws(() => opener.open(record), alertOf("unexpected_message"));
  const short = { type: 23, header: Buffer.of(23, 3, 3, 0, 16), body: Buffer.alloc(16) };
  assert.throws(() => opener.open(short), alertOf("bad_record_mac"));
});
