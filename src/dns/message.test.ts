import assert from "node:assert/strict";
import { test } from "node:test";
import * as packets from "dns-packet";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import { runs } from "../../test/support/runs.ts";
import { decodeMessage, encodeMessage } from "./message.ts";
import { canonicalName, nameBytes, readName } from "./name.ts";
import { openPacket } from "./packet.ts";
import { QueryReader } from "./query.ts";

const label = fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/);
const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join("."));
const ttl = fc.integer({ min: 0, max: 0x7fffffff });
const u16 = fc.integer({ min: 0, max: 65_535 });

const record: fc.Arbitrary<packets.Answer> = fc.oneof(
  fc.record({ type: fc.constant("A" as const), name, ttl, data: fc.ipV4() }),
  fc.record({ type: fc.constant("CNAME" as const), name, ttl, data: name }),
  fc.record({ type: fc.constant("NS" as const), name, ttl, data: name }),
  fc.record({ type: fc.constant("PTR" as const), name, ttl, data: name }),
  fc.record({
    type: fc.constant("MX" as const),
    name,
    ttl,
    data: fc.record({ preference: u16, exchange: name }),
  }),
  fc.record({
    type: fc.constant("SRV" as const),
    name,
    ttl,
    data: fc.record({ port: u16, target: name, priority: u16, weight: u16 }),
  }),
  fc.record({
    type: fc.constant("SOA" as const),
    name,
    ttl,
    data: fc.record({
      mname: name,
      rname: name,
      serial: ttl,
      refresh: ttl,
      retry: ttl,
      expire: ttl,
      minimum: ttl,
    }),
  }),
);
const message = fc.record({
  type: fc.constant("response" as const),
  id: u16,
  questions: fc.tuple(fc.record({ type: fc.constant("A" as const), name })),
  answers: fc.array(record, { maxLength: 6 }),
  authorities: fc.array(record, { maxLength: 3 }),
  additionals: fc.array(record, { maxLength: 3 }),
});

test("decode, then encode with compression: another implementation reads the same", () => {
  fc.assert(
    fc.property(message, (wanted) => {
      const theirs = packets.encode(wanted);
      const ours = encodeMessage(decodeMessage(theirs));
      assert.ok(ours.length <= theirs.length);
      assert.deepEqual(packets.decode(Buffer.from(ours)), packets.decode(theirs));
      assert.deepEqual(decodeMessage(ours), decodeMessage(theirs));
    }),
  );
});

test("unknown and new record types pass untouched", () => {
  const data = Uint8Array.from([0, 1, 0, 0, 1, 0, 3, 2, 0x68, 0x32, 0xc0, 0x0c]);
  for (const type of [64, 65, 257, 4711, 65_280]) {
    const sent = {
      id: 7,
      flags: 0x8180,
      questions: [{ name: "example.org", type, class: 1 }],
      answers: [{ name: "example.org", type, class: 1, ttl: 60, data }],
      authorities: [],
      additionals: [],
    };
    assert.deepEqual(decodeMessage(encodeMessage(sent)), sent);
  }
});

test("every truncation and every random change is an error or a message, never a hang", () => {
  const whole = packets.encode({
    type: "response",
    questions: [{ type: "A", name: "www.example.org" }],
    answers: [
      { type: "CNAME", name: "www.example.org", ttl: 5, data: "example.org" },
      { type: "A", name: "example.org", ttl: 5, data: "192.0.2.1" },
    ],
    additionals: [
      { type: "OPT", name: ".", udpPayloadSize: 1232, flags: 0, options: [] } as packets.OptAnswer,
    ],
  });
  const reader = new QueryReader();
  const readers = [decodeMessage, openPacket, (bytes: Uint8Array) => reader.read(bytes)];
  const survives = (bytes: Uint8Array) => {
    for (const read of readers) {
      try {
        read(bytes);
      } catch (error) {
        assert.ok(error instanceof ProtocolError, String(error));
      }
    }
  };
  for (let length = 0; length < whole.length; length++) {
    assert.throws(() => decodeMessage(whole.subarray(0, length)), ProtocolError);
    survives(whole.subarray(0, length));
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), survives));
  const change = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(change, fc.constantFrom(0x01, 0x80), (changes, kind) => {
      const bytes = Uint8Array.from(whole);
      bytes[2] = kind;
      for (const [at, value] of changes) bytes[at] = value;
      survives(bytes);
    }),
    { numRuns: runs(2000) },
  );
});

test("names: pointers only back, at most 255 bytes, no loops", () => {
  const loop = Uint8Array.from([0xc0, 0x00]);
  assert.throws(() => readName(loop, 0), ProtocolError);
  assert.throws(() => readName(Uint8Array.from([1, 97, 0xc0, 0x00]), 0), ProtocolError);
  assert.throws(() => readName(Uint8Array.from([0xc0, 0x02, 0xc0, 0x00]), 2), ProtocolError);
  const chain = new Uint8Array(600);
  for (let at = 14; at + 1 < chain.length; at += 2) {
    chain[at] = 0xc0 | ((at - 2) >> 8);
    chain[at + 1] = (at - 2) & 0xff;
  }
  assert.deepEqual(readName(chain, 200), { name: "", end: 202 });
  assert.throws(() => readName(chain, 598), /does not go back/);
  assert.throws(() => nameBytes(`${"a".repeat(63)}.`.repeat(4) + "b"), ProtocolError);
  assert.throws(() => nameBytes("a..b"), ProtocolError);
  assert.throws(() => nameBytes("a".repeat(64)), ProtocolError);
});

test("a pointer into the header is refused: with another id it would lead elsewhere, or in a circle", () => {
  const question = "016100 0001 0001";
  const pointing = (at: string) =>
    Buffer.from(
      `0000 8180 0001 0001 0000 0000 ${question} ${at} 0001 0001 0000003c 0004 c0000201`.replaceAll(" ", ""),
      "hex",
    );
  assert.equal(openPacket(pointing("c00c")).minTtl, 60);
  assert.throws(() => openPacket(pointing("c000")), /does not go back to a name/);
});

test("names: text and bytes are the same thing", () => {
  const anyLabel = fc.uint8Array({ minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(fc.array(anyLabel, { minLength: 0, maxLength: 6 }), (labels) => {
      const wire = Uint8Array.from([...labels.flatMap((each) => [each.length, ...each]), 0]);
      const read = readName(wire, 0);
      assert.equal(read.end, wire.length);
      assert.deepEqual(nameBytes(read.name), wire);
      const header = Buffer.alloc(12);
      header[5] = 1;
      const query = new QueryReader().read(Buffer.concat([header, wire, Buffer.from([0, 1, 0, 1])]));
      assert.equal(query?.name, canonicalName(read.name));
    }),
  );
});

test("a message that says it holds more than it can costs nothing", () => {
  const header = Buffer.from("00008180ffffffffffffffff", "hex");
  assert.throws(() => decodeMessage(Buffer.concat([header, Buffer.alloc(1000)])), /more records/);
  assert.throws(() => openPacket(Buffer.from("000081800001ffffffffffff0000010001", "hex")), /more records/);
});

test("keys keep apart what must not share an answer", () => {
  const reader = new QueryReader();
  const question = { type: "A" as const, name: "Example.ORG" };
  const keyOf = (packet: packets.Packet) => reader.read(packets.encode(packet))?.key;
  const plain = keyOf({ type: "query", questions: [question] });
  assert.equal(plain, keyOf({ type: "query", id: 9, questions: [{ ...question, name: "example.org" }] }));
  assert.notEqual(plain, keyOf({ type: "query", questions: [{ ...question, type: "AAAA" }] }));
  assert.notEqual(plain, keyOf({ type: "query", flags: packets.CHECKING_DISABLED, questions: [question] }));
  const opt = { type: "OPT", name: ".", udpPayloadSize: 4096, flags: packets.DNSSEC_OK, options: [] };
  const signed = { type: "query" as const, questions: [question], additionals: [opt as packets.OptAnswer] };
  assert.notEqual(plain, keyOf(signed));
});
