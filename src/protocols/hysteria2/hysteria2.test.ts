import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import type { Datagram, Ip } from "#core/session.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { toDestination } from "#net/address/ip.ts";
import { udpFrame } from "../../../test/support/hysteria2-frame.ts";
import { parseDataUrl } from "./masquerade/fixed.ts";
import { Fault } from "#core/fields.ts";
import { gecko } from "./gecko.ts";
import { GeckoParts } from "./gecko-parts.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";
import { inboundSchema, outboundSchema, parseBandwidth } from "./options.ts";
import { salamander } from "./salamander.ts";
import { chooseRate } from "./session.ts";
import { newUdpSessions } from "./udp-sessions.ts";
import { decodeUdp, encodeTcpRequest, encodeTcpResponse, parseAddress } from "./wire.ts";
import { takeTcpRequest, takeTcpResponse } from "./wire.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const queueOf = (bytes: Uint8Array) => {
  const queue = new ByteQueue();
  queue.push(Buffer.from(bytes));
  return queue;
};

describe("messages", () => {
  test("a request, and both answers", () => {
    const request = encodeTcpRequest("example.com:443", "xyz");
    assert.equal(request.toString("hex"), "44010f6578616d706c652e636f6d3a34343303" + "78797a");
    assert.deepEqual(takeTcpResponse(queueOf(hex("00 00 02 6162"))), { isOk: true, message: "" });
    assert.deepEqual(takeTcpResponse(queueOf(hex("01 02 6e6f 00"))), { isOk: false, message: "no" });
  });

  test("what a client asks for, and what it is answered, cut anywhere", () => {
    const request = encodeTcpRequest("example.com:443");
    for (let size = 0; size < request.length; size++)
      assert.equal(takeTcpRequest(queueOf(request.subarray(0, size))), null);
    const queue = queueOf(Buffer.concat([request, Buffer.from("data")]));
    assert.equal(takeTcpRequest(queue), "example.com:443");
    assert.equal(String(queue.takeAll()), "data");
    assert.throws(() => takeTcpRequest(queueOf(hex("4401 5000"))), ProtocolError);
    for (const [isOk, message] of [
      [true, ""],
      [false, "refused"],
    ] as const)
      assert.deepEqual(takeTcpResponse(queueOf(encodeTcpResponse(isOk, message))), { isOk, message });
  });

  test("an answer that comes in pieces, with data behind it", () => {
    const whole = hex("00 02 6f6b 03 616263 aabb");
    const queue = new ByteQueue();
    for (let at = 0; at < 7; at++) {
      queue.push(whole.subarray(at, at + 1));
      assert.equal(takeTcpResponse(queue), null);
    }
    queue.push(whole.subarray(7));
    assert.deepEqual(takeTcpResponse(queue), { isOk: true, message: "ok" });
    assert.equal(queue.length, 2);
    assert.throws(() => takeTcpResponse(queueOf(hex("00 5000"))), ProtocolError, "a text that is too long");
  });

  test("datagrams, every truncation of one, and random bytes", () => {
    const part = { packet: 7, fragment: 0, fragments: 1 };
    const encoded = udpFrame(1, part, { address: "8.8.8.8:53", data: Buffer.from("abc") });
    assert.equal(encoded.toString("hex"), "00000001000700010a382e382e382e383a3533616263");
    const { data, address, ...rest } = decodeUdp(encoded);
    assert.deepEqual([rest, Buffer.from(data).toString()], [{ session: 1, ...part }, "abc"]);
    assert.equal(Buffer.from(address).toString(), "8.8.8.8:53");
    for (let size = 0; size < encoded.length - 3; size++)
      assert.throws(() => decodeUdp(encoded.subarray(0, size)), ProtocolError);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          decodeUdp(bytes);
        } catch (error) {
          assert.ok(error instanceof ProtocolError);
        }
      }),
    );
  });

  test("addresses", () => {
    assert.deepEqual(parseAddress("[2001:db8::1]:53"), { host: null, ip: "2001:db8::1", port: 53 });
    assert.deepEqual(parseAddress("a.example:1"), { host: "a.example", ip: null, port: 1 });
    for (const bad of ["", ":1", "a", "a:", "a:70000", "a:x"]) assert.equal(parseAddress(bad), null);
  });
});

function sealedBy(filter: PacketFilter, datagram: Uint8Array): Buffer[] {
  const sealed: Buffer[] = [];
  filter.seal(datagram, null, (each) => void sealed.push(Buffer.from(each)));
  return sealed;
}

test("salamander: the specification's vector, and both ways for any datagram", () => {
  const filter = salamander("obfspass");
  const opened = filter.open(hex("010203040506070831bba134b5c681ec"), null);
  assert.equal(Buffer.from(opened ?? []).toString("hex"), "c000000001aabbcc");
  assert.equal(filter.open(hex("0102030405060708"), null), null);
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 1500 }), (plain) => {
      const [sealed = Buffer.alloc(0)] = sealedBy(filter, plain);
      assert.equal(sealed.length, plain.length + filter.overheadBytes);
      assert.deepEqual(new Uint8Array(filter.open(sealed, null) ?? []), plain);
    }),
  );
});

describe("gecko", () => {
  const LONG = Buffer.concat([hex("c000000001"), Buffer.alloc(1195, 7)]);
  const near = () => gecko("obfspass");
  const from = { ip: "192.0.2.1" as Ip, port: 4433 };

  test("a packet of the handshake goes in two to eight parts of random sizes, others as salamander has them", () => {
    const counts = new Set<number>();
    for (let again = 0; again < 200; again++) {
      const parts = sealedBy(near(), LONG);
      counts.add(parts.length);
      for (const { length } of parts) assert.ok(length >= 512 && length <= 1200, `${length} bytes`);
    }
    assert.deepEqual(
      [...counts].sort((a, b) => a - b),
      [2, 3, 4, 5, 6, 7, 8],
    );
    const short = hex("40aabbcc");
    const [sealed = Buffer.alloc(0), ...others] = sealedBy(near(), short);
    assert.equal(others.length, 0);
    assert.deepEqual(Buffer.from(salamander("obfspass").open(sealed, null) ?? []), short);
    assert.deepEqual(Buffer.from(near().open(sealed, null) ?? []), short);
  });

  test("parts in any order are a packet again, doubled ones are dropped, and sources are kept apart", () => {
    const far = near();
    const [first = Buffer.alloc(0), ...rest] = sealedBy(near(), LONG);
    const elsewhere = { ...from, port: 1 };
    assert.equal(far.open(first, elsewhere), null);
    for (const part of rest.toReversed()) assert.equal(far.open(part, from), null);
    for (const part of rest) assert.equal(far.open(part, from), null, "again");
    assert.deepEqual(Buffer.from(far.open(first, from) ?? []), LONG);
  });

  test("what is written by hand as the specification has it is read; every cut and random bytes are nothing", () => {
    const far = near();
    const plain = salamander("obfspass");
    const open = (text: string) => far.open(sealedBy(plain, hex(text))[0] ?? Buffer.alloc(0), from);
    assert.equal(open("8005130002ffffaabb"), null); // index 1 of 3, two bytes of padding
    assert.equal(open("8005230000cc"), null);
    assert.equal(Buffer.from(open("80050300018f") ?? []).toString("hex"), "aabbcc");
    assert.equal(Buffer.from(open("8006010000c1c2") ?? []).toString("hex"), "c1c2", "a single part");
    for (const bad of ["80", "80070900", "8007330000aa", "8007000000aa", "800701ffffaa"])
      assert.equal(open(bad), null, bad);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2100 }), (bytes) => {
        const datagram = far.open(bytes, from);
        assert.ok(datagram === null || datagram.length <= 2048 * 8);
      }),
    );
  });

  test("messages that are not whole are bounded, by source, by number and by time", () => {
    const parts = new GeckoParts();
    const piece = new Uint8Array(1024);
    const send = (source: string, message: number, nowMs: number, index = 0) =>
      parts.take(source, { message, index, count: 2 }, piece, nowMs);
    for (let message = 0; message < 20; message++) send("a", message, 0);
    assert.equal(parts.size, 8);
    assert.equal(send("a", 7, 8_000, 1)?.length, 2048);
    assert.equal(send("a", 6, 8_001, 1), null, "too late");
    for (let source = 0; source < 10_000; source++) send(`s${source}`, 1, 9_000);
    assert.ok(parts.size <= 4096, `${parts.size}`);
    assert.equal(send("s9999", 1, 9_000, 1)?.length, 2048, "the newest is there");
  });
});

test("datagrams between two ends: fragments in any order, numbers of their own, nothing for others", () => {
  const there: Uint8Array[] = [];
  const send = (head: Uint8Array, data: Uint8Array): void => void there.push(Buffer.concat([head, data]));
  const near = newUdpSessions({ mostBytes: 300, send, ended() {} });
  const flow = near.open();
  const target = toDestination("192.0.2.1", 53);
  const payload = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 251));
  flow.send({ payload, destination: target });
  assert.equal(there.length, 4);
  assert.ok(there.every(({ length }) => length <= 300));
  const came: Datagram[] = [];
  flow.receive(
    ({ payload: bytes, destination }) => void came.push({ payload: Buffer.from(bytes), destination }),
  );
  for (const frame of there.toReversed()) near.take(frame);
  near.take(udpFrame(99, { packet: 1, fragment: 0, fragments: 1 }, { address: "a:1", data: payload }));
  near.take(hex("00"));
  assert.deepEqual(came, [{ payload, destination: target }]);
});

test("rates", () => {
  const rates = { "100 mbps": 12.5e6, "1 Gbps": 125e6, "8": 1e6, "10 MBps": 10e6, "": 0, "64 kbps": 8000 };
  for (const [text, bytes] of Object.entries(rates)) assert.equal(parseBandwidth(text), bytes, text);
  for (const bad of ["fast", "1 xbps", "-1"]) assert.equal(parseBandwidth(bad), null);
  assert.equal(chooseRate("auto", 5), 0);
  assert.equal(chooseRate("0", 5), 5);
  assert.equal(chooseRate("3", 5), 3);
  assert.equal(chooseRate("9", 5), 5);
  assert.equal(chooseRate("9", 0), 0);
  assert.equal(chooseRate("nonsense", 5), 5);
});

test("keys: ranges of ports and seconds, rates as numbers, and words that are not known", () => {
  const node = { server: "a.example", port: 443, password: "p" };
  const parsed = outboundSchema.parse({
    ...node,
    ports: "20000-20010,30000",
    "hop-interval": "20-40",
    up: 50,
  });
  assert.deepEqual(parsed["hop-interval"], { from: 20, to: 40 });
  assert.equal(parsed.up, 50e6 / 8);
  assert.ok(outboundSchema.safeParse({ server: "a.example", ports: "20000-20010" }).success, "no port");
  assert.equal(outboundSchema.safeParse({ server: "a.example" }).error?.issues[0]?.path[0], "port");
  const listener = { users: { ann: "p" }, certificate: "c", "private-key": "k" };
  for (const masquerade of ["", "file:///srv/www", "https://a.example", "data:text/html,<p>"])
    assert.equal(inboundSchema.parse({ ...listener, masquerade }).masquerade, masquerade);
  for (const [source, body] of [
    ["data:text/html,<b>%20x</b>", "text/html <b> x</b>"],
    ["data:;base64,eA==", "text/plain;charset=US-ASCII x"],
  ] as const) {
    const fixed = parseDataUrl(source);
    assert.ok(!(fixed instanceof Fault));
    assert.equal(`${fixed.type} ${fixed.body.toString()}`, body);
  }
  assert.ok(!inboundSchema.safeParse({ ...listener, masquerade: "data:text/html,100%" }).success);
  for (const [key, value] of Object.entries({
    "ech-key": "k",
    masquerade: "/srv/www",
    obfs: "scramble",
    up: "fast",
  }))
    assert.equal(inboundSchema.safeParse({ ...listener, [key]: value }).success, false, key);
  const { error } = outboundSchema.safeParse({ ...node, obfs: "x" });
  assert.match(error?.issues[0]?.message ?? "", /salamander/);
});
