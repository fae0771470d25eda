import assert from "node:assert/strict";
import { test } from "node:test";
import { ProtocolError } from "#core/errors.ts";
import type { Destination, Ip } from "#core/session.ts";
import type { Decoded } from "#net/stream/byte-reader.ts";
import * as wire from "./wire.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const v4 = (ip: string, port: number): Destination => ({ host: null, ip: ip as Ip, port });
const named = (host: string, port: number): Destination => ({ host, ip: null, port });

interface Example {
  readonly name: string;
  readonly bytes: Buffer;
  readonly decode: (bytes: Buffer) => Decoded<unknown> | null;
  readonly value: unknown;
  readonly encoded?: Buffer;
}

// Bytes as the RFCs and the notes of SOCKS4's authors give them.
const EXAMPLES: readonly Example[] = [
  { name: "greeting", bytes: hex("05 02 00 02"), decode: wire.decodeGreeting, value: hex("00 02") },
  {
    name: "choice",
    bytes: hex("05 02"),
    decode: wire.decodeChoice,
    value: 2,
    encoded: wire.encodeChoice(2),
  },
  {
    name: "credentials",
    bytes: hex("01 05 616c696365 04 73336372"),
    decode: wire.decodeCredentials,
    value: { username: "alice", password: "s3cr" },
    encoded: wire.encodeCredentials({ username: "alice", password: "s3cr" }),
  },
  {
    name: "verdict",
    bytes: hex("01 00"),
    decode: wire.decodeVerdict,
    value: true,
    encoded: wire.encodeVerdict(true),
  },
  {
    name: "CONNECT by name",
    bytes: hex("05 01 00 03 0b 6578616d706c652e636f6d 01bb"),
    decode: wire.decodeRequest,
    value: { command: 1, destination: named("example.com", 443) },
    encoded: wire.encodeRequest(1, named("example.com", 443)),
  },
  {
    name: "CONNECT by IPv6 address",
    bytes: hex("05 01 00 04 20010db8000000000000000000000001 0050"),
    decode: wire.decodeRequest,
    value: { command: 1, destination: v4("2001:db8::1", 80) },
    encoded: wire.encodeRequest(1, v4("2001:db8::1", 80)),
  },
  {
    name: "success",
    bytes: hex("05 00 00 01 00000000 0000"),
    decode: wire.decodeReply,
    value: { code: 0, bound: v4("0.0.0.0", 0) },
    encoded: wire.encodeReply(0),
  },
  {
    name: "UDP ASSOCIATE",
    bytes: hex("05 03 00 01 00000000 0000"),
    decode: wire.decodeRequest,
    value: { command: 3, destination: v4("0.0.0.0", 0) },
    encoded: wire.encodeRequest(3, wire.NOWHERE),
  },
  {
    name: "its answer",
    bytes: hex("05 00 00 01 7f000001 0438"),
    decode: wire.decodeReply,
    value: { code: 0, bound: v4("127.0.0.1", 1080) },
    encoded: wire.encodeReply(0, v4("127.0.0.1", 1080)),
  },
  {
    name: "SOCKS4",
    bytes: hex("04 01 0050 5db8d822 626f62 00"),
    decode: wire.decodeRequest4,
    value: { command: 1, userId: "bob", destination: v4("93.184.216.34", 80) },
  },
  {
    name: "SOCKS4a",
    bytes: hex("04 01 01bb 00000001 00 6578616d706c652e636f6d 00"),
    decode: wire.decodeRequest4,
    value: { command: 1, userId: "", destination: named("example.com", 443) },
  },
];

for (const { name, bytes, decode, value, encoded } of EXAMPLES) {
  test(`${name}: decoded, encoded, and waited for at every truncation`, () => {
    assert.deepEqual(decode(bytes), { value, size: bytes.length });
    assert.deepEqual(decode(Buffer.concat([bytes, hex("ff 00 ff")])), { value, size: bytes.length });
    for (let size = 0; size < bytes.length; size++) assert.equal(decode(bytes.subarray(0, size)), null);
    if (encoded !== undefined) assert.deepEqual(encoded, bytes);
  });
}

test("SOCKS4: 0.0.0.0 is an address, not the sign of a name", () => {
  const decoded = wire.decodeRequest4(hex("04 01 0050 00000000 00"));
  assert.deepEqual(decoded?.value.destination, v4("0.0.0.0", 80));
});

test("SOCKS4 reply", () => assert.deepEqual(wire.encodeReply4(90), hex("00 5a 0000 00000000")));

test("what no message can begin with is refused at once", () => {
  assert.throws(() => wire.decodeGreeting(hex("04")), ProtocolError);
  assert.throws(() => wire.decodeCredentials(hex("05")), ProtocolError);
  assert.throws(() => wire.decodeRequest(hex("04 01 00 01")), ProtocolError);
  assert.throws(() => wire.decodeRequest(hex("05 01 00 03 00 0050")), ProtocolError);
  assert.throws(() => wire.decodeRequest(hex("05 01 00 03 02 610a 0050")), ProtocolError);
  assert.throws(() => wire.decodeReply(hex("48")), ProtocolError);
  assert.throws(() => wire.decodeRequest4(hex("04 01 01bb 00000001 00 00")), ProtocolError);
});

test("an unknown address type is told apart from a fault, so that it can be answered", () => {
  assert.deepEqual(wire.decodeRequest(hex("05 01 00 02")), {
    value: { command: 1, destination: null },
    size: 4,
  });
});

test("SOCKS4 fields end within 255 bytes", () => {
  const head = hex("04 01 01bb 00000001");
  const fill = (size: number) => Buffer.alloc(size, "a");
  assert.equal(wire.decodeRequest4(Buffer.concat([head, fill(255)])), null);
  assert.throws(() => wire.decodeRequest4(Buffer.concat([head, fill(256)])), ProtocolError);
  assert.throws(() => wire.decodeRequest4(Buffer.concat([head, hex("00"), fill(256)])), ProtocolError);
  const both = Buffer.concat([head, fill(255), hex("00"), fill(255), hex("00")]);
  assert.equal(wire.decodeRequest4(both)?.size, both.length);
});

test("a refusal needs no address behind its code", () => {
  assert.deepEqual(wire.decodeReply(hex("05 02"))?.value, { code: 2, bound: wire.NOWHERE });
});

test("credentials: 255 bytes each, UTF-8, empty password; longer ones cannot be said", () => {
  const longest = { username: "ü".repeat(127), password: "" };
  assert.deepEqual(wire.decodeCredentials(wire.encodeCredentials(longest))?.value, longest);
  assert.throws(() => wire.encodeCredentials({ username: "x".repeat(256), password: "" }), RangeError);
});

test("datagram", () => {
  const bytes = hex("0000 00 01 08080808 0035 616263");
  const item = wire.decodeDatagram(bytes);
  assert.deepEqual(item?.destination, v4("8.8.8.8", 53));
  assert.equal(String(item?.payload), "abc");
  const header = wire.encodeDatagramHeader(v4("8.8.8.8", 53), "ip");
  assert.deepEqual(Buffer.concat([header, Buffer.from("abc")]), bytes);
});

test("datagrams to be dropped: fragments, reserved bytes, truncated or unknown addresses", () => {
  for (const text of [
    "",
    "000000",
    "0000 01 01 08080808 0035 61",
    "0001 00 01 08080808 0035 61",
    "0000 00 02 08080808 0035 61",
    "0000 00 03 00 0035 61",
    "0000 00 01 08080808 00",
  ])
    assert.equal(wire.decodeDatagram(hex(text)), null, text);
});
