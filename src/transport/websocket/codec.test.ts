import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import { runs } from "../../../test/support/runs.ts";
import { acceptOf } from "./upgrade.ts";
import { WebSocketCodec } from "./codec.ts";
import { decodeEarlyData, encodeEarlyData } from "./early-data.ts";
import { mask } from "./mask.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

function opened(role: "client" | "server", pieces: readonly Buffer[]) {
  const replies: Buffer[] = [];
  const codec = new WebSocketCodec(role, (frame) => replies.push(frame));
  const got: Buffer[] = [];
  let ended = false;
  for (const piece of pieces)
    codec.open(Buffer.from(piece), (plain) => {
      if (plain === null) ended = true;
      else got.push(Buffer.from(plain));
    });
  return { bytes: Buffer.concat(got), ended, replies };
}

const bytewise = (bytes: Buffer) => Array.from(bytes, (byte) => Buffer.from([byte]));

describe("WebSocket", () => {
  test("published values: accept key (RFC 6455 §1.3), a masked frame, early data", () => {
    assert.equal(acceptOf("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    const frame = hex("82 85 11223344 79475f287e");
    assert.equal(String(opened("server", [frame]).bytes), "hello");
    assert.equal(String(opened("server", bytewise(frame)).bytes), "hello");
    assert.deepEqual(
      new WebSocketCodec("server", () => {}).seal(Buffer.from("hello")),
      hex("8205 68656c6c6f"),
    );
    const header = hex("00b831381d63244d53ad4f8cda48b308110001 55f1 01 7f000001");
    const text = "ALgxOB1jJE1TrU-M2kizCBEAAVXxAX8AAAE";
    assert.equal(encodeEarlyData(header), text);
    for (const spelling of [text, `${text}=`, text.replaceAll("-", "+").replaceAll("_", "/")])
      assert.deepEqual(decodeEarlyData(spelling), header);
    for (const other of ["", "chat, superchat", "a"]) assert.equal(decodeEarlyData(other), null);
  });

  test("masking equals the byte-wise definition at every offset, length and phase", () => {
    const key = hex("a1b2c3d4");
    for (let offset = 0; offset < 8; offset++)
      for (const length of [0, 1, 63, 64, 65, 131])
        for (let phase = 0; phase < 4; phase++) {
          const bytes = randomBytes(offset + length + 3);
          const expected = Buffer.from(bytes);
          for (let at = 0; at < length; at++)
            expected[offset + at] = (expected[offset + at] as number) ^ (key[(phase + at) & 3] as number);
          mask(bytes, offset, offset + length, key, phase);
          assert.deepEqual(bytes, expected);
        }
  });

  test("what one side seals the other opens, in any pieces", () => {
    const property = fc.property(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 70_000 }), { maxLength: 4 }),
      fc.integer({ min: 1, max: 5000 }),
      fc.constantFrom("client" as const, "server" as const),
      (writes, cut, from) => {
        const codec = new WebSocketCodec(from, () => {});
        const wire = Buffer.concat([...writes.map((one) => codec.seal(Buffer.from(one))), codec.sealEnd()]);
        const pieces: Buffer[] = [];
        for (let at = 0; at < wire.length; at += cut) pieces.push(wire.subarray(at, at + cut));
        const result = opened(from === "client" ? "server" : "client", pieces);
        assert.deepEqual(result.bytes, Buffer.concat(writes));
        assert.ok(result.ended);
      },
    );
    fc.assert(property, { numRuns: runs(40) });
  });

  test("ping is answered with its payload between fragments; text and fragments are data", () => {
    const { bytes, replies } = opened("client", [hex("0102 6162 8903 010203 0002 6364 8001 65")]);
    assert.equal(String(bytes), "abcde");
    assert.equal(replies.length, 1);
    const pong = opened("server", [replies[0] as Buffer]);
    assert.equal(replies[0]?.[0], 0x8a);
    assert.equal(pong.bytes.length, 0);
    assert.equal(opened("client", [hex("8900 8200 8801 00")]).ended, true);
  });

  test("every truncation waits; what is forbidden is refused", () => {
    const codec = new WebSocketCodec("client", () => {});
    const whole = codec.seal(randomBytes(70_000));
    for (let size = 0; size < 20; size++) opened("server", [whole.subarray(0, size)]);
    const refused = (role: "client" | "server", text: string) =>
      assert.throws(() => opened(role, [hex(text)]), ProtocolError, text);
    refused("server", "8205 68656c6c6f"); // no mask
    refused("client", "8285 11223344"); // a mask
    refused("client", "c205"); // reserved bit
    refused("client", "8305"); // opcode
    refused("client", "897e 0100"); // long ping
    refused("client", "0900"); // fragmented ping
    refused("client", "827f ffffffffffffffff"); // endless
  });

  test("random bytes never do more than ProtocolError", () => {
    const property = fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, client) => {
      try {
        opened(client ? "client" : "server", [Buffer.from(bytes)]);
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    });
    fc.assert(property, { numRuns: runs(500) });
  });
});
