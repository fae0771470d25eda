import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { DialError, ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { toDestination } from "#net/address/ip.ts";
import { runs } from "../../../test/support/runs.ts";
import { PaddingCodec } from "./padding.ts";
import { encodePreface, MUX_PROTOCOLS, takePreface } from "./preface.ts";
import { encodeAnswer, encodeStreamRequest, RequestCodec, takeAnswer, takeStreamRequest } from "./request.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const DNS = toDestination("8.8.8.8", 53);

function queueOf(bytes: Uint8Array): ByteQueue {
  const queue = new ByteQueue();
  queue.push(Buffer.from(bytes));
  return queue;
}

test("the worked bytes", () => {
  assert.deepEqual(encodePreface({ protocol: "smux", padding: false }), hex("0000"));
  assert.deepEqual(encodePreface({ protocol: "h2mux", padding: false }), hex("0002"));
  assert.deepEqual(takePreface(queueOf(hex("01 01 00"))), { protocol: "yamux", padding: false });
  assert.deepEqual(takePreface(queueOf(hex("01 00 01 0001 00"))), { protocol: "smux", padding: true });
  const stream = encodeStreamRequest({ kind: "stream", destination: DNS });
  assert.deepEqual(stream, hex("0000 01 08080808 0035"));
  const named = { kind: "packets", destination: toDestination("a.example", 53) } as const;
  assert.deepEqual(encodeStreamRequest(named), hex("0003 03 09 612e6578616d706c65 0035"));
  assert.equal(takeStreamRequest(queueOf(hex("0001 01 08080808 0035")))?.kind, "datagrams");
  assert.deepEqual(encodeAnswer(null), hex("00"));
  assert.deepEqual(encodeAnswer("no"), hex("01 02 6e6f"));
});

test("every truncation waits", () => {
  for (const protocol of MUX_PROTOCOLS)
    for (const padding of [false, true]) {
      const bytes = encodePreface({ protocol, padding });
      for (let size = 0; size < bytes.length; size++)
        assert.equal(takePreface(queueOf(bytes.subarray(0, size))), null);
      const whole = queueOf(bytes);
      assert.deepEqual(takePreface(whole), { protocol, padding });
      assert.equal(whole.length, 0);
    }
  const request = encodeStreamRequest({ kind: "packets", destination: toDestination("a.example", 1) });
  for (let size = 0; size < request.length; size++)
    assert.equal(takeStreamRequest(queueOf(request.subarray(0, size))), null);
  const answer = encodeAnswer("refused");
  for (let size = 0; size < answer.length; size++)
    assert.equal(takeAnswer(queueOf(answer.subarray(0, size))), false);
});

test("random bytes: a message, a wait or an error", () => {
  const property = fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
    for (const take of [takePreface, takeStreamRequest, takeAnswer]) {
      try {
        take(queueOf(bytes));
      } catch (error) {
        assert.ok(error instanceof ProtocolError || error instanceof DialError);
      }
    }
    new PaddingCodec().open(Buffer.from(bytes), () => {});
  });
  fc.assert(property, { numRuns: runs(500) });
});

describe("answers", () => {
  const answered = (...wire: readonly Buffer[]): string => {
    const codec = new RequestCodec({ kind: "stream", destination: DNS });
    let got = "";
    for (const piece of wire) codec.open(piece, (plain) => (got += plain));
    return got;
  };
  test("success is taken off the stream", () => assert.equal(answered(hex("00"), hex("6869")), "hi"));
  test("a failure is logged, and cannot forge a log line", () => {
    assert.throws(() => answered(hex("01 03"), Buffer.from("a\nb")), /the mux server says: a\?b/);
  });
  test("a failure's text has a bound", () => {
    assert.throws(() => answered(hex("01 ffffff")), ProtocolError);
    assert.throws(() => answered(hex("01 ff7f")), ProtocolError);
  });
  test("an end without an answer is a failure", () => {
    assert.throws(() => new RequestCodec({ kind: "stream", destination: DNS }).openEnd(), DialError);
  });
});

test("padding: what is sealed opens again, in any pieces, and stops after sixteen writes", () => {
  const property = fc.property(
    fc.array(fc.uint8Array({ minLength: 1, maxLength: 3000 }), { maxLength: 20 }),
    fc.integer({ min: 1, max: 5000 }),
    (writes, cut) => {
      const sealing = new PaddingCodec(Buffer.from("preface"));
      const sealed = writes.map((one) => sealing.seal(Buffer.from(one)));
      const wire = Buffer.concat(sealed).subarray(writes.length === 0 ? 0 : 7);
      const opening = new PaddingCodec();
      const got: Buffer[] = [];
      for (let at = 0; at < wire.length; at += cut)
        opening.open(wire.subarray(at, at + cut), (plain) => got.push(Buffer.from(plain)));
      assert.deepEqual(Buffer.concat(got), Buffer.concat(writes));
      for (const [at, one] of sealed.entries())
        assert.equal(one.length > (writes[at]?.length ?? 0) + 200, at < 16);
    },
  );
  fc.assert(property, { numRuns: runs(50) });
});

test("padding: a write of more than a frame's length is cut", () => {
  const codec = new PaddingCodec();
  const plain = Buffer.alloc(150_000, 7);
  let size = 0;
  new PaddingCodec().open(codec.seal(plain), (piece) => (size += piece.length));
  assert.equal(size, plain.length);
});
