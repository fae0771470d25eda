import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import { runs } from "../../../test/support/runs.ts";
import { MESSAGE_HEAD_BYTES, MessageReader, writeMessageHead } from "./messages.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

function opened(...pieces: readonly Buffer[]): Buffer {
  const got: Buffer[] = [];
  const reader = new MessageReader((bytes, from, to) => got.push(Buffer.from(bytes.subarray(from, to))));
  for (const piece of pieces)
    reader.take(Buffer.concat([Buffer.of(1), piece, Buffer.of(1)]), 1, 1 + piece.length);
  return Buffer.concat(got);
}

function message(data: Uint8Array): Buffer {
  const out = Buffer.alloc(2 + MESSAGE_HEAD_BYTES + data.length, 0xff);
  writeMessageHead(out, 2, data.length);
  out.set(data, 2 + MESSAGE_HEAD_BYTES);
  assert.equal(out.readUInt16BE(), 0xffff);
  return out.subarray(2);
}

describe("messages of gRPC", () => {
  test("published values", () => {
    assert.equal(opened(hex("00 00000002 0a 00")).length, 0);
    assert.equal(opened(hex("00 00000000")).length, 0);
    assert.equal(String(opened(hex("00 00000009 0a 02 6865 0a 03 6c6c6f"))), "hello");
    const other = hex("00 00000007 12 02 ffff 0a 01 61"); // another field beside the data
    assert.equal(String(opened(other)), "a");
    const whole = hex("00 00000007 0a 05 68656c6c6f");
    assert.equal(String(opened(...Array.from(whole, (byte) => Buffer.of(byte)))), "hello");
  });

  test("a head is of the same length whatever follows", () => {
    assert.deepEqual(message(Buffer.from("hello")), hex("00 00000009 0a 858000 68656c6c6f"));
    assert.deepEqual(message(Buffer.alloc(0)), hex("00 00000004 0a 808000"));
    for (const size of [0, 1, 127, 128, 16_375, 16_384, 65_536, 2 ** 21 - 1]) {
      const data = Buffer.alloc(size, size);
      assert.ok(opened(message(data), message(data)).equals(Buffer.concat([data, data])), `${size}`);
    }
  });

  test("what is framed opens again, in any pieces", () => {
    const property = fc.property(
      fc.array(fc.uint8Array({ maxLength: 20_000 }), { maxLength: 4 }),
      fc.integer({ min: 1, max: 9_000 }),
      (all, cut) => {
        const wire = Buffer.concat(all.map(message));
        const pieces: Buffer[] = [];
        for (let at = 0; at < wire.length; at += cut) pieces.push(wire.subarray(at, at + cut));
        assert.ok(opened(...pieces).equals(Buffer.concat(all)));
      },
    );
    fc.assert(property, { numRuns: runs(50) });
  });

  test("hostile bytes", () => {
    const refused = (text: string) => assert.throws(() => opened(hex(text)), ProtocolError, text);
    refused("01 00000002 0a 00"); // compressed
    refused("00 00000002 08 01"); // a varint field
    refused("00 00000003 0a 05 61"); // a field beyond its message
    refused("00 00000009 0a ffffffffff 00"); // a length without an end
    refused("00 00000002 0a 80"); // a length beyond its message
    const property = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        opened(Buffer.from(bytes));
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    });
    fc.assert(property, { numRuns: runs(500) });
  });
});
