/** TLS 1.3 records of a worker against every kind of input, without sockets: memory in place of the kernel. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { Evp } from "#platform/linux/evp.ts";
import { EAGAIN, HANGUP, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { ALERT } from "#transport/tls13/alerts.ts";
import { cipherSuite } from "#transport/tls13/cipher-suites.ts";
import { encodeMessage, MESSAGE } from "#transport/tls13/handshake-messages.ts";
import { plainRecord, RECORD, RecordOpener, RecordSealer, takeRecord } from "#transport/tls13/records.ts";
import { PLAIN_BYTES } from "../../../../test/support/memory-socket.ts";
import { runs } from "../../../../test/support/runs.ts";
import { BROKEN } from "./sealed-reader.ts";
import {
  FULL_RECORD,
  type Bench,
  openBench,
  payload,
  update,
  drain,
  sentRecords,
  alertsIn,
} from "../../../../test/support/record-wires.ts";

const skip = Evp.open() === null ? "SKIP records of a worker: needs Linux and libcrypto by FFI" : false;
const SUITES = [0x1301, 0x1302, 0x1303];

for (const id of SUITES)
  test(`suite ${id.toString(16)}: any payload, in any pieces, asked for in any amount`, { skip }, () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 20_000 }), { maxLength: 8 });
    const cuts = fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 20 });
    const whole = (parts: readonly Uint8Array[], sizes: readonly number[], size: number, asks: boolean) => {
      const bench = openBench({ id });
      let sealed = Buffer.concat(parts.map((part) => payload(bench, part)));
      const got: Buffer[] = [];
      for (let turn = 0; sealed.length > 0; turn++) {
        bench.socket.arrived = sealed.subarray(0, sizes[turn % sizes.length]);
        sealed = sealed.subarray(bench.socket.arrived.length);
        bench.wire.onEvents(READABLE);
        if (asks) assert.ok(bench.wire.available(bench.io) !== 0);
        if (bench.wire.readable) got.push(drain(bench, size).text);
      }
      assert.deepEqual(Buffer.concat(got), Buffer.concat(parts));
      bench.socket.ended = true;
      bench.wire.onEvents(READABLE | HANGUP);
      assert.deepEqual(drain(bench, size), { text: Buffer.alloc(0), last: 0 });
      bench.wire.drop(bench.io);
    };
    const size = fc.integer({ min: 1, max: 50_000 });
    fc.assert(fc.property(pieces, cuts, size, fc.boolean(), whole), { numRuns: runs(40) });
  });

test("the longest records fill the thread's buffer to its end and not further", { skip }, () => {
  const bench = openBench();
  const bytes = Buffer.alloc(40 * FULL_RECORD, "0123456789abcdef-");
  bench.socket.arrived = payload(bench, bytes);
  assert.ok(drain(bench, PLAIN_BYTES).text.equals(bytes));
  bench.wire.drop(bench.io);
});

test("an end between two records is an end, and a fault within one", { skip }, () => {
  const example = openBench();
  const first = payload(example, "first").length;
  const size = first + payload(example, "second").length;
  example.wire.drop(example.io);
  for (let cut = 0; cut <= size; cut++) {
    const bench = openBench();
    const sealed = Buffer.concat([payload(bench, "first"), payload(bench, "second")]);
    bench.socket.arrived = sealed.subarray(0, cut);
    bench.socket.ended = true;
    bench.wire.onEvents(READABLE | HANGUP);
    const { text, last } = drain(bench, 100);
    assert.equal(String(text), cut < first ? "" : cut < size ? "first" : "firstsecond");
    assert.equal(last, [0, first, size].includes(cut) ? 0 : BROKEN, `after ${cut} bytes`);
    assert.deepEqual(sentRecords(bench), []);
    bench.wire.drop(bench.io);
  }
});

test("a changed bit ends it by an alert; what came before is given, and nothing after", { skip }, () => {
  const example = openBench();
  const first = payload(example, "first").length;
  const size = first + payload(example, "second").length;
  example.wire.drop(example.io);
  for (let at = 0; at < size; at++) {
    const bench = openBench();
    const sealed = Buffer.concat([
      payload(bench, "first"),
      payload(bench, "second"),
      payload(bench, "third"),
    ]);
    sealed[at] = (sealed[at] ?? 0) ^ (1 << (at & 7));
    bench.socket.arrived = sealed;
    bench.socket.ended = true; // a length that grew waits for what does not come
    bench.wire.onEvents(READABLE | HANGUP);
    const { text, last } = drain(bench, 100);
    assert.equal(last, BROKEN);
    assert.equal(String(text), at < first ? "" : "first");
    const alerts = alertsIn(sentRecords(bench));
    const { bad_record_mac: forged, record_overflow: long, unexpected_message: strange } = ALERT;
    assert.ok(
      alerts.length === 0 || [forged, long, strange].includes(alerts[0] as typeof forged),
      `${alerts.join(" ")} at ${at}`,
    );
    const inBody = at % first >= 5 || at >= first + 5;
    if (inBody) assert.deepEqual(alerts, [forged]);
    assert.equal(bench.wire.read(bench.io, 9), BROKEN);
    assert.equal(bench.wire.available(bench.io), BROKEN);
    bench.wire.drop(bench.io);
  }
});

test("noise is a fault or a wait", { skip }, () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (noise) => {
      const bench = openBench();
      bench.socket.arrived = Buffer.from(noise);
      const { text, last } = drain(bench, 100);
      assert.equal(text.length, 0);
      assert.ok(last === BROKEN || last === EAGAIN);
      bench.wire.drop(bench.io);
    }),
    { numRuns: runs(60) },
  );
});

test("one read opens so many records, however little is in them, and few changes of keys", { skip }, () => {
  for (const [most, one] of [
    [64, (bench: Bench) => payload(bench, "x")],
    [4, (bench: Bench) => Buffer.concat([update(bench, 0), payload(bench, "x")])],
  ] as const) {
    const bench = openBench();
    bench.socket.arrived = Buffer.concat(Array.from({ length: 500 }, () => one(bench)));
    bench.socket.ended = true;
    bench.wire.onEvents(READABLE | HANGUP);
    assert.ok(bench.wire.read(bench.io, PLAIN_BYTES) <= most);
    assert.ok(bench.wire.available(bench.io) > 0);
    const { text, last } = drain(bench, PLAIN_BYTES);
    assert.deepEqual([text.length >= 500 - most, last], [true, 0]);
    bench.wire.drop(bench.io);
  }
});

test("a part of a message keeps no more memory than a whole one takes", { skip }, () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heldBytes = (): number => {
    collect();
    collect(); // what the first one has found is given back behind it
    return process.memoryUsage().arrayBuffers;
  };
  const [example, benches, records] = [openBench(), 60, 260];
  const text = "x".repeat(1000);
  const short = Buffer.concat(Array.from({ length: records + 1 }, () => payload(example, text)));
  example.wire.drop(example.io);
  const before = heldBytes();
  const kept = Array.from({ length: benches }, () => {
    const bench = openBench();
    bench.socket.arrived = short.subarray(0, short.length - 1);
    assert.equal(drain(bench, PLAIN_BYTES).text.length, records * text.length);
    return bench;
  });
  const grownBytes = heldBytes() - before;
  assert.ok(grownBytes < benches * 100_000, `${grownBytes}`);
  for (const { io, wire } of kept) wire.drop(io);
});

test("goes on with what was read before", { skip }, () => {
  const example = openBench();
  const sealed = Buffer.concat([payload(example, "payload"), payload(example, "next")]);
  for (let cut = 0; cut <= sealed.length; cut++) {
    const bench = openBench({ unread: sealed.subarray(0, cut) });
    bench.socket.arrived = sealed.subarray(cut);
    assert.equal(String(drain(bench, 100).text), "payloadnext");
    bench.wire.drop(bench.io);
  }
  example.wire.drop(example.io);
});

for (const id of SUITES)
  test(`suite ${id.toString(16)}: new keys, one way and both`, { skip }, () => {
    const bench = openBench({ id });
    for (const request of [0, 1, 1, 0, 1] as const) {
      bench.socket.arrived = Buffer.concat([
        payload(bench, "old "),
        update(bench, request),
        payload(bench, "new"),
      ]);
      bench.wire.onEvents(READABLE);
      assert.equal(String(drain(bench, 100).text), "old new");
      bench.socket.memory.plain.set(Buffer.from("answer"));
      assert.equal(bench.wire.write(bench.io, 6), 6);
      const records = sentRecords(bench);
      assert.deepEqual(
        records.map(({ type }) => type),
        request === 1 ? [RECORD.handshake, RECORD.applicationData] : [RECORD.applicationData],
      );
      assert.equal(String(records.at(-1)?.content), "answer");
    }
    bench.wire.drop(bench.io);
  });

test("tickets and warnings pass; close_notify is the end, whatever follows it", { skip }, () => {
  const bench = openBench();
  const ticket = Buffer.concat([Buffer.alloc(8), Buffer.of(0), Buffer.from([0, 1, 7, 0, 0])]);
  const message = encodeMessage(MESSAGE.newSessionTicket, ticket);
  bench.socket.arrived = Buffer.concat([
    bench.sealer.seal(RECORD.handshake, message.subarray(0, 7)),
    bench.sealer.seal(RECORD.handshake, message.subarray(7)),
    bench.sealer.seal(RECORD.alert, Buffer.of(1, ALERT.user_canceled)),
    payload(bench, "payload"),
    bench.sealer.seal(RECORD.alert, Buffer.of(1, ALERT.close_notify)),
    Buffer.from("no record"),
  ]);
  assert.deepEqual(drain(bench, 100), { text: Buffer.from("payload"), last: 0 });
  bench.wire.drop(bench.io);
});

const FAULTS: readonly (readonly [string, (bench: Bench) => Buffer, number | null])[] = [
  ["an alert of the server", ({ sealer }) => sealer.seal(RECORD.alert, Buffer.of(2, 80)), null],
  ["an open record", () => plainRecord(RECORD.changeCipherSpec, Buffer.of(1)), ALERT.unexpected_message],
  ["no TLS", () => Buffer.from("HTTP/1.1 400 Bad Request"), ALERT.unexpected_message],
  ["a record that is too long", () => Buffer.from([23, 3, 3, 0x41, 1]), ALERT.record_overflow],
  ["a record without content", () => Buffer.from([23, 3, 3, 0, 16]), ALERT.bad_record_mac],
  [
    "a message that no server sends",
    ({ sealer }) => sealer.seal(RECORD.handshake, encodeMessage(MESSAGE.finished, Buffer.alloc(32))),
    ALERT.unexpected_message,
  ],
  [
    "a request that there is not",
    ({ sealer }) => sealer.seal(RECORD.handshake, encodeMessage(MESSAGE.keyUpdate, Buffer.of(2))),
    ALERT.illegal_parameter,
  ],
  [
    "payload within a message",
    (bench) => Buffer.concat([bench.sealer.seal(RECORD.handshake, Buffer.of(4)), payload(bench, "x")]),
    ALERT.unexpected_message,
  ],
  [
    "nothing, again and again",
    ({ sealer }) =>
      Buffer.concat(Array.from({ length: 33 }, () => sealer.seal(RECORD.applicationData, Buffer.alloc(0)))),
    ALERT.unexpected_message,
  ],
];

for (const [what, sent, alert] of FAULTS)
  test(`${what} ends it`, { skip }, () => {
    const bench = openBench();
    bench.socket.arrived = Buffer.concat([payload(bench, "before"), sent(bench)]);
    assert.deepEqual(drain(bench, 100), { text: Buffer.from("before"), last: BROKEN });
    assert.deepEqual(alertsIn(sentRecords(bench)), alert === null ? [] : [alert]);
    bench.wire.drop(bench.io);
  });

for (const mostContent of [63, 1000, FULL_RECORD])
  test(`records of ${mostContent} at most; what a socket does not take goes first`, { skip }, () => {
    const plain = Buffer.alloc(PLAIN_BYTES, "abcdefghijk");
    const rooms = fc.array(fc.integer({ min: 0, max: 60_000 }), { maxLength: 10 });
    const takesAll = (steps: readonly number[]): void => {
      const bench = openBench({ mostContent });
      const { wire, socket, io } = bench;
      wire.onEvents(READABLE);
      socket.arrived = update(bench, 1);
      drain(bench, 1);
      socket.memory.plain.set(plain);
      socket.room = 0;
      assert.equal(wire.write(io, plain.length), plain.length);
      assert.ok(wire.pending && !wire.writable && io.bufferedBytes > plain.length);
      for (const room of [...steps, Infinity]) {
        for (socket.room = room; wire.pending;) {
          wire.onEvents(WRITABLE);
          const sent = wire.flush(io);
          if (sent === EAGAIN) break;
        }
      }
      assert.equal(wire.pending, false);
      assert.equal(io.bufferedBytes, 0);
      assert.equal(wire.endWriting(io), 0);
      assert.ok(socket.hasEnded);
      const records = sentRecords(bench);
      const parts = records
        .filter(({ type }) => type === RECORD.applicationData)
        .map(({ content }) => content);
      assert.ok(parts.every(({ length }) => length <= mostContent));
      assert.ok(Buffer.concat(parts).equals(plain));
      assert.deepEqual(alertsIn(records), [ALERT.close_notify]);
      assert.equal(records[0]?.type, RECORD.handshake);
      wire.drop(io);
    };
    fc.assert(fc.property(rooms, takesAll), { numRuns: runs(6) });
  });

test("an end that the socket does not take at once is said when it does", { skip }, () => {
  const bench = openBench();
  bench.socket.room = 3;
  assert.equal(bench.wire.endWriting(bench.io), EAGAIN);
  assert.equal(bench.socket.hasEnded, false);
  bench.socket.room = Infinity;
  bench.wire.onEvents(WRITABLE);
  assert.ok(bench.wire.flush(bench.io) > 0);
  assert.equal(bench.wire.endWriting(bench.io), 0);
  assert.ok(bench.socket.hasEnded);
  assert.deepEqual(alertsIn(sentRecords(bench)), [ALERT.close_notify]);
  bench.wire.drop(bench.io);
});

test("a wire that is released gives all that another one goes on with", { skip }, () => {
  const bench = openBench();
  const { socket, wire, io } = bench;
  const first = Buffer.concat([payload(bench, "one"), update(bench, 1), payload(bench, "two and more")]);
  const second = payload(bench, "three");
  socket.arrived = Buffer.concat([first, second.subarray(0, 9)]);
  wire.onEvents(READABLE);
  for (const word of ["one", "two"]) {
    assert.equal(wire.read(io, 3), 3);
    assert.equal(String(Buffer.from(socket.memory.plain.subarray(0, 3))), word);
  }
  socket.memory.plain.set(Buffer.from("ours")); // behind the answer to the new key
  assert.equal(wire.write(io, 4), 4);
  const { failed, unsent, opened, records } = wire.release(io);
  assert.equal(failed, false);
  assert.equal(unsent, null);
  assert.equal(String(Buffer.from(opened ?? [])), " and more");
  const { opened: opens, sealed: seals, secrets } = records ?? assert.fail();
  const [ofServer, ofClient] = [secrets.subarray(0, 32), secrets.subarray(32, 64)].map(Buffer.from);
  const suite = cipherSuite(0x1301) ?? assert.fail();
  const opener = new RecordOpener(suite, ofServer ?? assert.fail(), { sequence: opens });
  const sealer = new RecordSealer(suite, ofClient ?? assert.fail(), { sequence: seals });
  const arrived = new ByteQueue();
  arrived.push(Buffer.concat([secrets.subarray(64), second.subarray(9)]));
  assert.equal(String(opener.open(takeRecord(arrived) ?? assert.fail()).content), "three");
  const sent = sentRecords(bench);
  assert.equal(String(sent.at(-1)?.content), "ours");
  socket.sent = sealer.seal(RECORD.applicationData, Buffer.from("and on"));
  assert.equal(String(sentRecords(bench)[0]?.content), "and on");
});
