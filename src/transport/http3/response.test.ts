import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import { encodeHeaders } from "./request.ts";
import { readResponse } from "./response.ts";

const data = (text: string) => Buffer.concat([Buffer.of(0, text.length), Buffer.from(text)]);
const head = (status: string) => Buffer.from(encodeHeaders([[":status", status]]));
const UNKNOWN = Buffer.from("2103aabbcc", "hex");

function read(bytes: Uint8Array, mostBytes = 100, pieceBytes = bytes.length) {
  const pieces = [];
  for (let at = 0; at < bytes.length; at += pieceBytes)
    pieces.push(Buffer.from(bytes.subarray(at, at + pieceBytes)));
  return readResponse(Readable.from(pieces), mostBytes);
}

const WHOLE = Buffer.concat([
  UNKNOWN,
  head("103"),
  head("200"),
  data("ab"),
  UNKNOWN,
  data("c"),
  Buffer.from(encodeHeaders([["trailer", "x"]])),
]);

test("an answer between interim ones, unknown frames and a trailer, in pieces of any size", async () => {
  for (let pieceBytes = 1; pieceBytes <= WHOLE.length; pieceBytes++) {
    const { status, body } = await read(WHOLE, 100, pieceBytes);
    assert.deepEqual([status, body.toString()], [200, "abc"]);
  }
});

test("what is cut short, too long or out of order is refused", async () => {
  const whole = Buffer.concat([head("200"), data("abc")]);
  for (let size = 0; size < whole.length; size++) {
    if (size === head("200").length) continue; // an answer without a body
    await assert.rejects(read(whole.subarray(0, size)), ProtocolError, `${size} bytes`);
  }
  await assert.rejects(read(whole, 2), /more than 2 bytes/);
  await assert.rejects(read(data("a")), /before the answer/);
  await assert.rejects(read(Buffer.from("0180020000", "hex")), /too long/);
  await assert.rejects(read(Buffer.from(encodeHeaders([["a", "b"]]))), /without a status/);
});

test("random bytes are an answer or a ProtocolError", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), fc.boolean(), async (bytes, behindHead) => {
      try {
        await read(behindHead ? Buffer.concat([head("200"), bytes]) : bytes);
      } catch (error) {
        assert.ok(error instanceof ProtocolError, String(error));
      }
    }),
  );
});
