import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteQueue } from "#lib/byte-queue.ts";
import { toDestination } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { DEFAULT_SCHEME } from "./padding.ts";
import * as wire from "./wire.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const TARGET = encodeSocksAddress(toDestination("example.com", 443));

test("the worked example", () => {
  const hash = "1c8bfe8f801d79745c4631d09fff36c82aa37fc4cce4fc946683d7b336b63032";
  assert.deepEqual(
    wire.encodePreamble(wire.passwordHash("letmein"), 30),
    hex(`${hash}001e${"00".repeat(30)}`),
  );
  const settings = wire.encodeSettings({
    v: "2",
    client: "example/1.0",
    "padding-md5": DEFAULT_SCHEME.md5,
  });
  assert.deepEqual(
    wire.encodeFrame(wire.SETTINGS, 0, settings),
    hex(
      "04000000000043763d320a636c69656e743d6578616d706c652f312e300a70616464696e672d6d64353d3735636666326164383961616466356532353730353965653537316562653131",
    ),
  );
  assert.deepEqual(wire.encodeFrame(wire.SYN, 1), hex("01000000010000"));
  assert.deepEqual(wire.encodeData(1, TARGET), hex("0200000001000f030b6578616d706c652e636f6d01bb"));
  assert.deepEqual(wire.encodeFrame(wire.FIN, 1), hex("03000000010000"));
  assert.deepEqual(wire.encodeWaste(5), hex("000000000000050000000000"));
  assert.equal(DEFAULT_SCHEME.raw.length, 137);
  assert.equal(DEFAULT_SCHEME.md5, "75cff2ad89aadf5e257059ee571ebe11");
});

test("every truncation waits; long data is cut into equal parts", () => {
  const frame = wire.encodeFrame(wire.SYNACK, 7, Buffer.from("text"));
  for (let size = 0; size < frame.length; size++) {
    const queue = new ByteQueue();
    queue.push(frame.subarray(0, size));
    assert.equal(wire.takeFrame(queue), null);
  }
  const long = wire.encodeData(3, Buffer.alloc(70_000));
  assert.equal(long.length, 70_000 + 2 * wire.HEADER_BYTES);
  assert.equal(long.readUInt16BE(5), 35_000);
});

test("settings: unknown keys and bad lines are passed over", () => {
  assert.equal(wire.versionIn(wire.decodeSettings(Buffer.from("v=2\nfoo\nx=y=z"))), 2);
  assert.equal(wire.versionIn(wire.decodeSettings(Buffer.from("client=a"))), 1);
  assert.equal(wire.versionIn(wire.decodeSettings(Buffer.from("v=two"))), 1);
});
