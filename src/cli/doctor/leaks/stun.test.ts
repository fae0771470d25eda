import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeBinding, mappedAddress } from "./stun.ts";

const REQUEST = Buffer.from("000100002112a442b7e7a701bc34d686fa87dfae", "hex");
/** The samples of RFC 5769 §2.2 and §2.3, cut to the attribute. */
const ANSWER4 = Buffer.from("0101000c2112a442b7e7a701bc34d686fa87dfae002000080001a147e112a643", "hex");
const ANSWER6 = Buffer.from(
  "010100182112a442b7e7a701bc34d686fa87dfae002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9",
  "hex",
);

test("the addresses of the samples of RFC 5769", () => {
  assert.equal(mappedAddress(REQUEST, ANSWER4), "192.0.2.1");
  assert.equal(mappedAddress(REQUEST, ANSWER6), "2001:db8:1234:5678:11:2233:4455:6677");
});

test("a plain address of old servers, behind attributes that are not known", () => {
  const attributes = Buffer.from("802200036f6c6400000100080001 0050c0000207".replaceAll(" ", ""), "hex");
  const answer = Buffer.concat([ANSWER4.subarray(0, 20), attributes]);
  answer.writeUInt16BE(attributes.length, 2);
  assert.equal(mappedAddress(REQUEST, answer), "192.0.2.7");
});

test("no answer to the request, each truncation, random bytes: null", () => {
  assert.equal(mappedAddress(encodeBinding(), ANSWER4), null);
  assert.equal(mappedAddress(REQUEST, REQUEST), null);
  for (const answer of [ANSWER4, ANSWER6])
    for (let length = 0; length < answer.length; length++) {
      assert.equal(mappedAddress(REQUEST, answer.subarray(0, length)), null);
      const shorter = Buffer.from(answer.subarray(0, length));
      if (length >= 20) shorter.writeUInt16BE(length - 20, 2);
      assert.equal(mappedAddress(REQUEST, shorter), null);
    }
});
