import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "node:test";
import { EXTENSION } from "#transport/tls13/extensions.ts";
import { encodeServerHello, RETRY_RANDOM } from "#transport/tls13/hello-messages.ts";
import { GROUP } from "#transport/tls13/key-exchange.ts";
import { plainRecord, RECORD } from "#transport/tls13/records.ts";
import { numbers16, u16, vector16 } from "#transport/tls13/wire.ts";
import { runs } from "../../../../test/support/runs.ts";
import { certificateRecord, MAX_FLIGHT_BYTES, readDestFlight } from "./dest-flight.ts";

const serverHello = (random = Buffer.alloc(32, 7)): Buffer =>
  encodeServerHello({
    random,
    sessionId: Buffer.alloc(32, 9),
    suite: 0x1301,
    extensions: new Map([
      [EXTENSION.supportedVersions, u16(0x0304)],
      [EXTENSION.keyShare, Buffer.concat([numbers16([GROUP.x25519]), vector16(Buffer.alloc(32, 3))])],
    ]),
  });

const sealed = (recordBytes: number): Buffer =>
  plainRecord(RECORD.applicationData, Buffer.alloc(recordBytes - 5, 1));
const start = (hello = serverHello()): Buffer =>
  Buffer.concat([plainRecord(RECORD.handshake, hello), plainRecord(RECORD.changeCipherSpec, Buffer.of(1))]);
const flight = (...lengths: readonly number[]): Buffer => Buffer.concat([start(), ...lengths.map(sealed)]);

test("a record a message, or one for all; what comes behind is not the flight's", () => {
  const four = readDestFlight(flight(37, 449, 101, 74, 260));
  assert.ok(typeof four !== "string");
  assert.deepEqual(four.lengths, [37, 449, 101, 74]);
  assert.deepEqual(four.serverHello, serverHello());
  assert.equal(four.bytes, flight(37, 449, 101, 74).length);
  const one = readDestFlight(flight(3800, 260));
  assert.ok(typeof one !== "string");
  assert.deepEqual(one.lengths, [3800]);
  assert.equal(one.bytes, flight(3800).length);
});

test("is waited for byte by byte, and stays what it is", () => {
  const bytes = flight(37, 449, 101, 74);
  for (let size = 0; size < bytes.length; size++)
    assert.equal(readDestFlight(bytes.subarray(0, size)), "more", `${size} bytes`);
  assert.notEqual(typeof readDestFlight(bytes), "string");
});

const NONE: readonly (readonly [string, Buffer])[] = [
  ["another hello is wanted", start(serverHello(RETRY_RANDOM))],
  [
    "TLS 1.2",
    Buffer.concat([plainRecord(RECORD.handshake, serverHello()), plainRecord(RECORD.handshake, sealed(90))]),
  ],
  [
    "several messages in the first record",
    plainRecord(RECORD.handshake, Buffer.concat([serverHello(), serverHello()])),
  ],
  ["a message in several records", plainRecord(RECORD.handshake, serverHello().subarray(0, 50))],
  ["an alert", plainRecord(RECORD.alert, Buffer.of(2, 40))],
  ["an alert behind the hello", Buffer.concat([start(), plainRecord(RECORD.alert, Buffer.of(2, 40))])],
  [
    "a longer ChangeCipherSpec",
    Buffer.concat([plainRecord(RECORD.handshake, serverHello()), plainRecord(20, Buffer.of(1, 1))]),
  ],
  ["no TLS", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
  ["an empty record", plainRecord(RECORD.handshake, Buffer.alloc(0))],
  ["another version", plainRecord(RECORD.handshake, serverHello(), 0x0301)],
  ["too much", Buffer.concat([start(), Buffer.of(23, 3, 3, 0xff, 0xff), Buffer.alloc(MAX_FLIGHT_BYTES)])],
];
for (const [name, bytes] of NONE)
  test(`cannot be imitated: ${name}`, () => assert.equal(readDestFlight(bytes), "none"));

test("noise never throws, and is never waited for beyond the limit", () => {
  const noise = fc.uint8Array({ maxLength: 400 });
  const changed = fc.tuple(fc.nat(), fc.nat(255)).map(([at, value]) => {
    const bytes = flight(37, 449, 101, 74);
    bytes[at % bytes.length] = value;
    return bytes;
  });
  const read = (bytes: Uint8Array): void => {
    const found = readDestFlight(Buffer.from(bytes));
    if (typeof found !== "string") assert.ok(found.bytes <= bytes.length && found.lengths.length > 0);
  };
  fc.assert(fc.property(fc.oneof(noise, changed), read), { numRuns: runs(2000) });
  fc.assert(
    fc.property(noise, (bytes) => {
      read(Buffer.concat([start(), bytes]));
    }),
    { numRuns: runs(500) },
  );
  const most = Buffer.concat([start(), Buffer.of(23, 3, 3, 0xff, 0xff), Buffer.alloc(MAX_FLIGHT_BYTES)]);
  assert.equal(readDestFlight(most), "none");
});

test("what a certificate of ours needs", () => {
  const read = (...lengths: readonly number[]) => {
    const found = readDestFlight(flight(...lengths));
    assert.ok(typeof found !== "string");
    return certificateRecord(found, 178);
  };
  assert.deepEqual(read(37, 449, 101, 74), { bytes: 449, leastBytes: 213 });
  assert.deepEqual(read(3800), { bytes: 3800, leastBytes: 343 });
});
