import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { QuicFault } from "#transport/quic/fault.ts";
import { EARLY_FRAMES, FRAME, HANDSHAKE_FRAMES, readFrames, type FrameReceiver } from "./frames.ts";
import { beginLong, CID_BYTES, finishLong, INITIAL, ONE_RTT, readHeader, RETRY } from "./header.ts";
import { VERSION_NEGOTIATION, readVersions, writeShort, writeVersions } from "./header.ts";
import { expandPacketNumber, numberBytesFor, writePacketNumber } from "./packet-number.ts";
import { WireReader } from "./reader.ts";
import { decodeTransportParameters, encodeTransportParameters } from "./transport-parameters.ts";
import { varintBytes, WireWriter } from "./writer.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const reader = (bytes: Uint8Array) => new WireReader().reset(bytes);

/** Writes down what it was given. */
class Recorder implements FrameReceiver {
  readonly calls: unknown[][] = [];
  onAck(from: WireReader, hasEcn: boolean): void {
    const [largest, delay, count, first] = [from.varint(), from.varint(), from.varint(), from.varint()];
    for (let at = 0; at < count; at++) {
      from.varint();
      from.varint();
    }
    for (let at = 0; hasEcn && at < 3; at++) from.varint();
    this.calls.push(["ack", largest, delay, count, first]);
  }
  onCrypto = (offset: number, bytes: Uint8Array) =>
    void this.calls.push(["crypto", offset, Uint8Array.from(bytes)]);
  onStream = (id: number, offset: number, bytes: Uint8Array, isLast: boolean) =>
    void this.calls.push(["stream", id, offset, Uint8Array.from(bytes), isLast]);
  onResetStream = (...all: number[]) => void this.calls.push(["reset", ...all]);
  onStopSending = (...all: number[]) => void this.calls.push(["stop", ...all]);
  onMaxData = (limit: number) => void this.calls.push(["max-data", limit]);
  onMaxStreamData = (...all: number[]) => void this.calls.push(["max-stream-data", ...all]);
  onMaxStreams = (isBidi: boolean, limit: number) => void this.calls.push(["max-streams", isBidi, limit]);
  onNewToken = (token: Uint8Array) => void this.calls.push(["token", Uint8Array.from(token)]);
  onNewConnectionId = (id: object) => void this.calls.push(["new-id", { ...id }]);
  onRetireConnectionId = (sequence: number) => void this.calls.push(["retire", sequence]);
  onPathChallenge = (data: Uint8Array) => void this.calls.push(["challenge", Uint8Array.from(data)]);
  onPathResponse = (data: Uint8Array) => void this.calls.push(["response", Uint8Array.from(data)]);
  onClose = (...all: unknown[]) => void this.calls.push(["close", ...all]);
  onHandshakeDone = () => void this.calls.push(["done"]);
  onDatagram = (payload: Uint8Array) => void this.calls.push(["datagram", Uint8Array.from(payload)]);
}

function framesOf(bytes: Uint8Array, isHandshake = false): unknown[][] {
  const to = new Recorder();
  readFrames(reader(bytes), isHandshake ? HANDSHAKE_FRAMES : null, to);
  return to.calls;
}

test("packets of 0-RTT carry no acknowledgements, handshake bytes and answers", () => {
  const read = (bytes: number[]) => readFrames(reader(Uint8Array.from(bytes)), EARLY_FRAMES, new Recorder());
  for (const type of [FRAME.ack, FRAME.crypto, FRAME.newToken, FRAME.retireConnectionId, FRAME.pathResponse])
    assert.throws(() => read([type, 0, 0, 0, 0, 0, 0, 0, 0]), QuicFault);
  assert.throws(() => read([FRAME.handshakeDone]), QuicFault);
  assert.equal(read([FRAME.stream + 2, 0, 1, 65]).isAnswerable, true);
});

test("numbers: the samples of RFC 9000 appendix A.1", () => {
  const samples: readonly (readonly [string, number])[] = [
    ["9d7f3e7d", 494_878_333],
    ["7bbd", 15_293],
    ["25", 37],
    ["4025", 37],
  ];
  for (const [text, value] of samples) assert.equal(reader(hex(text)).varint(), value);
  assert.equal(reader(hex("c2197c5eff14e88c")).varint(), Number.MAX_SAFE_INTEGER, "above 2^53");
});

test("numbers: what is written is read, in as many bytes as was said", () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (value) => {
      const out = new WireWriter(new Uint8Array(8));
      out.varint(value);
      assert.equal(out.at, varintBytes(value));
      assert.equal(reader(out.bytes.subarray(0, out.at)).varint(), value);
      if (out.at > 1) assert.throws(() => reader(out.bytes.subarray(0, out.at - 1)).varint(), QuicFault);
    }),
  );
});

test("packet numbers: the samples of RFC 9000 appendix A.3, and any within the window", () => {
  assert.equal(expandPacketNumber(0x9b32, 2, 0xa82f30ea), 0xa82f9b32);
  fc.assert(
    fc.property(fc.nat(2 ** 40), fc.nat(0x6fff), (acked, ahead) => {
      const number = acked + ahead;
      const bytes = numberBytesFor(number, acked);
      const out = new WireWriter(new Uint8Array(4));
      writePacketNumber(out, number % 2 ** 32, bytes);
      const low = out.bytes.subarray(0, bytes).reduce((sum, byte) => sum * 256 + byte, 0);
      assert.equal(expandPacketNumber(low, bytes, acked), number);
    }),
  );
});

describe("headers", () => {
  const [destination, source] = [hex("8394c8f03e515708"), hex("0102030405060708")];
  const initial = (): Uint8Array => {
    const out = new WireWriter(new Uint8Array(100));
    const at = beginLong(out, { type: INITIAL, destination, source, token: hex("aabb"), numberBytes: 2 });
    finishLong(out, at, 30);
    out.zeros(30);
    return out.bytes.subarray(0, out.at);
  };

  test("a long one", () => {
    const header = readHeader(reader(initial()));
    assert.equal(header.type, INITIAL);
    assert.deepEqual(
      [header.destination, header.source, header.token].map((view) => Buffer.from(view).toString("hex")),
      ["8394c8f03e515708", "0102030405060708", "aabb"],
    );
    assert.equal(header.end - header.numberAt, 30);
  });

  test("every truncation of it is refused, and random bytes cost nothing but the packet", () => {
    const good = initial();
    for (let size = 0; size < good.length; size++)
      assert.throws(() => readHeader(reader(good.subarray(0, size))), QuicFault);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        try {
          const { numberAt, end } = readHeader(reader(bytes));
          assert.ok(numberAt <= end && end <= bytes.length);
        } catch (error) {
          assert.ok(error instanceof QuicFault);
        }
      }),
    );
  });

  test("a short one, a Retry of RFC 9001 appendix A.4, and the list of versions", () => {
    const out = new WireWriter(new Uint8Array(40));
    writeShort(out, source, 1, 2);
    out.zeros(20);
    const short = readHeader(reader(out.bytes.subarray(0, out.at)));
    assert.equal(short.type, ONE_RTT);
    assert.equal(short.numberAt, 1 + CID_BYTES);
    const retry = readHeader(
      reader(hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba")),
    );
    assert.equal(retry.type, RETRY);
    assert.equal(retry.end - retry.numberAt, 5 + 16);
    const list = new WireWriter(new Uint8Array(60));
    writeVersions(list, { source, destination }, 0x1a2a_3a4a);
    const bytes = list.bytes.subarray(0, list.at);
    const versions = readHeader(reader(bytes));
    assert.equal(versions.type, VERSION_NEGOTIATION);
    assert.ok(readVersions(bytes.subarray(versions.numberAt)).includes(1));
  });
});

describe("frames", () => {
  const id = `18 02 01 08 ${"11".repeat(8)} ${"22".repeat(16)}`;
  const all = [
    "02 05 00 01 00 00 01",
    "03 05 00 00 00 01 02 03",
    "04 04 05 06",
    "05 04 05",
    "06 00 02 aabb",
    "07 01 aa",
    "0f 04 05 01 cc",
    "10 4100",
    "11 04 4100",
    "12 05",
    "13 05",
    "14 05",
    "15 04 05",
    "16 05",
    "17 05",
    id,
    "19 00",
    `1a ${"33".repeat(8)}`,
    `1b ${"33".repeat(8)}`,
    "1c 05 06 01 61",
    "1d 05 01 61",
    "1e",
    "31 01 dd",
  ].map(hex);

  test("each is understood", () => {
    const calls = framesOf(Buffer.concat([Buffer.of(0, 0, 1), ...all]));
    const names = calls.map(([name]) => name);
    const expected =
      "ack ack reset stop crypto token stream max-data max-stream-data max-streams max-streams new-id retire " +
      "challenge response close close done datagram";
    assert.equal(names.join(" "), expected);
    assert.deepEqual(calls[6], ["stream", 4, 5, new Uint8Array([0xcc]), true]);
  });

  test("STREAM and DATAGRAM without a length reach to the end", () => {
    assert.deepEqual(framesOf(hex("08 04 aabb")), [["stream", 4, 0, new Uint8Array([0xaa, 0xbb]), false]]);
    assert.deepEqual(framesOf(hex("30 aabb")), [["datagram", new Uint8Array([0xaa, 0xbb])]]);
  });

  test("every truncation is refused, or is a shorter good frame", () => {
    for (const frame of all)
      for (let size = 1; size < frame.length; size++)
        assert.throws(() => framesOf(frame.subarray(0, size)), QuicFault, frame.toString("hex"));
  });

  test("an empty packet, an unknown frame, and one too early are refused", () => {
    for (const bytes of ["", "20", "4020"]) assert.throws(() => framesOf(hex(bytes)), QuicFault);
    for (const frame of all.slice(6)) {
      if (frame[0] === FRAME.closeTransport) continue;
      assert.throws(() => framesOf(frame, true), QuicFault, frame.toString("hex"));
    }
  });

  test("random bytes end in frames or a fault", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (bytes) => {
        try {
          framesOf(bytes);
        } catch (error) {
          assert.ok(error instanceof QuicFault);
        }
      }),
    );
  });
});

describe("transport parameters", () => {
  const initialSource = hex("0102030405060708");
  const encoded = encodeTransportParameters({
    initialSource,
    idleTimeoutMs: 30_000,
    maxData: 20 * 2 ** 20,
    maxDatagramFrame: 65_535,
    originalDestination: hex("8394c8f03e515708"),
    resetToken: new Uint8Array(16),
  });

  test("what one side says the other understands", () => {
    const said = decodeTransportParameters(encoded, "server");
    assert.equal(said.idleTimeoutMs, 30_000);
    assert.equal(said.maxData, 20 * 2 ** 20);
    assert.equal(said.maxStreamsBidi, 0);
    assert.equal(said.ackDelayExponent, 3);
    assert.deepEqual(said.initialSource, new Uint8Array(initialSource));
    assert.equal(said.retrySource, null);
  });

  test("doubled, out of bounds, cut short, or not a client's", () => {
    assert.throws(() => decodeTransportParameters(encoded, "client"), QuicFault);
    for (const bad of ["0101050101 05", "030244af", "0a0115", "0b0480004000", "0c0101", "0201aa", "01"])
      assert.throws(() => decodeTransportParameters(hex(bad), "server"), QuicFault, bad);
    assert.equal(
      decodeTransportParameters(hex("c2197c5eff14e88c02aabb"), "server").maxData,
      0,
      "an unknown one",
    );
  });

  test("random bytes end in parameters or a fault", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        try {
          decodeTransportParameters(bytes, "client");
        } catch (error) {
          assert.ok(error instanceof QuicFault);
        }
      }),
    );
  });
});
