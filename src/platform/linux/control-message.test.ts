import assert from "node:assert/strict";
import { endianness } from "node:os";
import { test } from "node:test";
import fc from "fast-check";
import { NO_CONTROL, readControl } from "./control-message.ts";
import { decodeSockaddr, encodeSockaddr } from "./sockaddr.ts";

const V4 = { address: Uint8Array.of(192, 0, 2, 7), port: 443 };
const V6 = { address: Uint8Array.from({ length: 16 }, (_, at) => at + 1), port: 53 };

function sockaddr(endpoint: typeof V4): Uint8Array {
  const into = new Uint8Array(28).fill(0xff);
  return into.slice(0, encodeSockaddr(into, endpoint));
}

/** cmsghdr and data, padded to eight bytes as CMSG_SPACE has it. */
function message(level: number, type: number, data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(Math.ceil((16 + data.length) / 8) * 8);
  const view = new DataView(bytes.buffer);
  const little = endianness() === "LE";
  view.setBigUint64(0, BigInt(16 + data.length), little);
  view.setInt32(8, level, little);
  view.setInt32(12, type, little);
  bytes.set(data, 16);
  return bytes;
}

/** Not a Buffer: the kernel's memory is none, and a copy of one compares differently. */
function joined(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

test("socket addresses of both families go there and back", () => {
  for (const endpoint of [V4, V6]) assert.deepEqual(decodeSockaddr(sockaddr(endpoint)), endpoint);
  assert.equal(sockaddr(V4).length, 16);
  assert.equal(sockaddr(V6).length, 28);
  assert.equal(decodeSockaddr(sockaddr(V6).subarray(0, 20)), null);
  assert.equal(decodeSockaddr(Uint8Array.from({ length: 28 })), null);
});

test("original destination and code point, whatever stands around them", () => {
  const ecn = new Uint8Array(Int32Array.of((46 << 2) | 1).buffer);
  const v4 = joined([message(0, 1, Uint8Array.of((46 << 2) | 3)), message(0, 20, sockaddr(V4))]);
  assert.deepEqual(readControl(v4), { original: V4, dscp: 46, ecn: 3, segmentBytes: 0 });
  const v6 = joined([
    message(1, 29, new Uint8Array(16)),
    message(41, 74, sockaddr(V6)),
    message(41, 67, ecn),
    message(17, 104, new Uint8Array(Int32Array.of(1200).buffer)),
  ]);
  assert.deepEqual(readControl(v6), { original: V6, dscp: 46, ecn: 1, segmentBytes: 1200 });
  assert.deepEqual(readControl(new Uint8Array()), NO_CONTROL);
});

test("truncated and random bytes are read without harm", () => {
  const whole = Buffer.concat([message(0, 20, sockaddr(V4)), message(41, 74, sockaddr(V6))]);
  for (let length = 0; length <= whole.length; length++) readControl(whole.subarray(0, length));
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 160 }), (bytes) => {
      const { dscp, segmentBytes } = readControl(bytes);
      assert.ok(segmentBytes >= 0);
      assert.ok(dscp === null || (dscp >= 0 && dscp <= 63));
    }),
  );
});
