import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import type { Destination, Ip } from "#core/session.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { runs } from "../../../test/support/runs.ts";
import { decodeRequest, encodeRequest, keyOf, packetFraming } from "./wire.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const key = "aad8b4393cadaef52ce00a7bbc6711298b7de27a3dc248d01fc38272";
const named: Destination = { host: "example.com", ip: null, port: 443 };
const addressed: Destination = { host: null, ip: "8.8.8.8" as Ip, port: 53 };

describe("Trojan on the wire", () => {
  test("published values", () => {
    assert.equal(keyOf("letmein"), key);
    const connect = encodeRequest(key, { command: 1, destination: named });
    assert.equal(String(connect.subarray(0, 56)), key);
    assert.deepEqual(connect.subarray(56), hex("0d0a 01 03 0b 6578616d706c652e636f6d 01bb 0d0a"));
    const associate = encodeRequest(key, { command: 3, destination: addressed });
    assert.deepEqual(associate.subarray(56), hex("0d0a 03 01 08080808 0035 0d0a"));
    const packet = packetFraming("client").encode({ payload: Buffer.from("abc"), destination: addressed });
    assert.deepEqual(packet, hex("01 08080808 0035 0003 0d0a 616263"));
  });

  test("requests round-trip; every truncation waits", () => {
    for (const destination of [named, addressed]) {
      const bytes = encodeRequest(key, { command: 1, destination });
      assert.deepEqual(decodeRequest(Buffer.concat([bytes, Buffer.from("hi")])), {
        value: { command: 1, destination },
        size: bytes.length,
      });
      for (let size = 56; size < bytes.length; size++)
        assert.equal(decodeRequest(bytes.subarray(0, size)), null, `${size}`);
    }
  });

  test("bad line ends, commands and addresses are refused", () => {
    for (const tail of [
      "0a0d",
      "0d0a 02",
      "0d0a 01 02",
      "0d0a 01 01 08080808 0035 0a",
      "0d0a 01 03 00 0035 0d0a",
    ])
      assert.throws(() => decodeRequest(Buffer.concat([Buffer.from(key), hex(tail)])), ProtocolError, tail);
    const property = fc.property(fc.uint8Array({ maxLength: 80 }), (tail) => {
      try {
        decodeRequest(Buffer.concat([Buffer.from(key), hex("0d0a"), tail]));
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    });
    fc.assert(property, { numRuns: runs(300) });
  });

  test("packets in single bytes and all at once; large ones are not sent", () => {
    const framing = packetFraming("server");
    const reply = {
      payload: Buffer.from("U:abc"),
      destination: { host: null, ip: "127.0.0.1" as Ip, port: 22_002 },
    };
    const bytes = framing.encode(reply);
    assert.deepEqual(bytes, hex("01 7f000001 55f2 0005 0d0a 553a616263"));
    const queue = new ByteQueue();
    let count = 0;
    for (const byte of Buffer.concat([bytes, bytes])) {
      queue.push(Buffer.from([byte]));
      if (framing.take(queue) !== null) count++;
    }
    assert.equal(count, 2);
    queue.push(Buffer.concat([bytes, bytes]));
    assert.deepEqual(framing.take(queue), reply);
    assert.deepEqual(framing.take(queue), reply);
    assert.equal(framing.take(queue), null);
    assert.throws(() => framing.encode({ ...reply, payload: Buffer.alloc(8193) }));
    const property = fc.property(fc.uint8Array({ maxLength: 100 }), (random) => {
      const arrived = new ByteQueue();
      arrived.push(Buffer.from(random));
      try {
        while (framing.take(arrived) !== null);
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    });
    fc.assert(property, { numRuns: runs(300) });
  });
});
