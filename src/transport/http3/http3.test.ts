import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { decodeHuffman } from "#transport/http-fields/huffman.ts";
import { decodeFields, encodeFields } from "./qpack.ts";
import { takeHeaders } from "./request.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const queueOf = (bytes: Uint8Array) => {
  const queue = new ByteQueue();
  queue.push(Buffer.from(bytes));
  return queue;
};

test("Huffman: the samples of RFC 7541 appendix C", () => {
  const samples = {
    f1e3c2e5f23a6ba0ab90f4ff: "www.example.com",
    a8eb10649cbf: "no-cache",
    d07abe941054d444a8200595040b8166e082a62d1bff: "Mon, 21 Oct 2013 20:13:21 GMT",
  };
  for (const [code, text] of Object.entries(samples))
    assert.equal(decodeHuffman(hex(code), 100)?.toString(), text);
  assert.equal(decodeHuffman(hex("a8eb10649cbf"), 7), null, "longer than allowed");
  assert.equal(decodeHuffman(hex("ffffffff"), 100), null, "the end mark");
});

test("an answer as servers of hysteria2 give it, behind a frame of another type", () => {
  const headers = hex("01 07 0000 5f09 83132cff".replace("07", "08"));
  const arrived = queueOf(Buffer.concat([hex("21 02 aabb"), headers]));
  assert.deepEqual(takeHeaders(arrived), [[":status", "233"]]);
  for (let size = 0; size < headers.length; size++)
    assert.equal(takeHeaders(queueOf(headers.subarray(0, size))), null);
  assert.throws(() => takeHeaders(queueOf(hex("00 01 aa"))), ProtocolError);
});

test("what is encoded is decoded, and a dynamic table is refused", () => {
  const text = fc.string({
    unit: fc.constantFrom("a", "b", "z", "-", "0", "9", ":", "/", " "),
    maxLength: 40,
  });
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text), { maxLength: 20 }), (fields) => {
      assert.deepEqual(decodeFields(encodeFields(fields)), fields);
    }),
  );
  for (const bad of ["0200 d1", "0000 80", "0000 40 00", "0000 10", "0000 ff40", "0000 5f", "00"])
    assert.throws(() => decodeFields(hex(bad)), ProtocolError, bad);
});

test("random bytes end in fields or a fault", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
      try {
        decodeFields(bytes);
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    }),
  );
});
