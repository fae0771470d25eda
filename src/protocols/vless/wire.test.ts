import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import type { Destination, Ip } from "#core/session.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import {
  encodeFrame,
  STATUS_END,
  STATUS_KEEP,
  STATUS_NEW,
  takeFrame,
} from "#protocols/shared/mux-cool-frame.ts";
import {
  packetAddrFraming,
  peekPacketAddr,
  plainFraming,
  xudpFraming,
} from "#protocols/shared/datagram-framing.ts";
import { parseUserId } from "#protocols/shared/user-id.ts";
import { runs } from "../../../test/support/runs.ts";
import { userTable } from "./users.ts";
import { AnswerStripper, decodeRequest, encodeRequest, VISION } from "./wire.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const ID = "b831381d63244d53ad4f8cda48b30811";
const id = hex(ID);
const named: Destination = { host: "example.com", ip: null, port: 443 };
const addressed: Destination = { host: null, ip: "8.8.8.8" as Ip, port: 53 };
const v6: Destination = { host: null, ip: "2001:db8::1" as Ip, port: 1 };

const queueOf = (...pieces: readonly Uint8Array[]): ByteQueue => {
  const queue = new ByteQueue();
  for (const piece of pieces) queue.push(Buffer.from(piece));
  return queue;
};

describe("VLESS on the wire", () => {
  test("published requests", () => {
    const encoded = (flow: string, command: number, destination: Destination | null) =>
      encodeRequest(id, { flow, command, destination });
    const name = "02 0b 6578616d706c652e636f6d";
    const addons = "12 0a10 78746c732d727072782d766973696f6e";
    assert.deepEqual(encoded("", 1, named), hex(`00 ${ID} 00 01 01bb ${name}`));
    assert.deepEqual(encoded(VISION, 1, named), hex(`00 ${ID} ${addons} 01 01bb ${name}`));
    assert.deepEqual(encoded(VISION, 3, null), hex(`00 ${ID} ${addons} 03`));
    assert.deepEqual(encoded("", 2, addressed), hex(`00 ${ID} 00 02 0035 01 08080808`));
  });

  test("requests round-trip; every truncation waits; what follows stays", () => {
    for (const destination of [named, addressed, v6])
      for (const flow of ["", VISION]) {
        const request = { flow, command: 1, destination };
        const bytes = encodeRequest(id, request);
        const decoded = decodeRequest(Buffer.concat([bytes, Buffer.from("payload")]));
        assert.deepEqual(decoded, { value: request, size: bytes.length });
        for (let size = 18; size < bytes.length; size++)
          assert.equal(decodeRequest(bytes.subarray(0, size)), null);
      }
  });

  test("addons: a seed alone, unknown fields; bad ones are refused", () => {
    const flowOf = (addons: string) => {
      const body = hex(addons);
      return decodeRequest(hex(`00 ${ID} ${body.length.toString(16).padStart(2, "0")} ${addons} 03`))?.value
        .flow;
    };
    assert.equal(flowOf("12 02 ffff"), "");
    assert.equal(flowOf("18 05 0a 01 61"), "a");
    for (const bad of ["0a 05 61", "0a", "0b 01", "18 ffffffffffff"])
      assert.throws(() => flowOf(bad), ProtocolError, bad);
  });

  test("commands and addresses that do not exist are refused", () => {
    for (const tail of ["04", "00 0035 01 08080808", "01 0035 04 08080808", "01 0035 02 00"])
      assert.throws(() => decodeRequest(hex(`00 ${ID} 00 ${tail}`)), ProtocolError, tail);
    const property = fc.property(fc.uint8Array({ maxLength: 80 }), (tail) => {
      try {
        decodeRequest(Buffer.concat([hex(`00 ${ID}`), tail]));
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    });
    fc.assert(property, { numRuns: runs(500) });
  });

  test("the answer's header is taken off in any pieces", () => {
    for (const header of ["0000", "0003 aabbcc"]) {
      const wire = Buffer.concat([hex(header), Buffer.from("hello")]);
      for (let cut = 1; cut <= wire.length; cut++) {
        const stripper = new AnswerStripper();
        let got = "";
        for (let at = 0; at < wire.length; at += cut)
          got += String(stripper.strip(wire.subarray(at, at + cut)));
        assert.equal(got, "hello");
      }
    }
    assert.throws(() => new AnswerStripper().strip(hex("0100")), ProtocolError);
  });

  test("user ids: hex with and without dashes, names as UUID version 5", () => {
    assert.deepEqual(parseUserId("b831381d-6324-4d53-ad4f-8cda48b30811"), id);
    assert.deepEqual(parseUserId(ID.toUpperCase()), id);
    assert.equal(parseUserId("example")?.toString("hex"), "feb54431301b52bba6dde1e93e81bb9e");
    assert.equal(parseUserId(""), null);
    assert.equal(parseUserId("x".repeat(31)), null);
  });

  test("user tables are whole or not at all", () => {
    const user = (name: string, credential: string, flow: string | null = null) => ({
      id: name,
      credential,
      flow,
    });
    assert.equal(userTable([user("a", ID)], "l").find(id)?.name, "a");
    assert.throws(() => userTable([user("a", ID), user("b", ID)], "l"), /a and b have the same uuid/);
    assert.throws(() => userTable([user("a", ID, "xtls-rprx-direct")], "l"), /expected xtls-rprx-vision/);
  });
});

describe("datagrams in VLESS", () => {
  test("published frames", () => {
    const data = Buffer.from("abc");
    const globalId = hex("0102030405060708");
    const first = { session: 0, status: STATUS_NEW, network: 2, destination: addressed, globalId, data };
    assert.deepEqual(
      encodeFrame(first),
      hex("0014 0000 01 01 02 0035 01 08080808 0102030405060708 0003 616263"),
    );
    const other = { host: null, ip: "8.8.4.4" as Ip, port: 53 };
    const next = {
      session: 0,
      status: STATUS_KEEP,
      network: 2,
      destination: other,
      data: Buffer.from("def"),
    };
    assert.deepEqual(encodeFrame(next), hex("000c 0000 02 01 02 0035 01 08080404 0003 646566"));
    assert.deepEqual(encodeFrame({ session: 0, status: STATUS_END }), hex("0004 0000 03 00"));
    assert.deepEqual(
      plainFraming(addressed, "client").encode({ payload: data, destination: addressed }),
      hex("0003 616263"),
    );
  });

  test("frames in single bytes and all at once; bad metadata ends the connection", () => {
    const frames = Buffer.concat([
      hex("0014 0000 01 01 02 0035 01 08080808 0102030405060708 0003 616263"),
      hex("0004 0000 04 01 0002 ffff"),
      hex("0004 0007 03 02"),
    ]);
    const all = queueOf(frames);
    assert.equal(String(takeFrame(all)?.data), "abc");
    assert.equal(takeFrame(all)?.status, 4);
    assert.equal(takeFrame(all)?.failed, true);
    assert.equal(takeFrame(all), null);
    const slow = new ByteQueue();
    let count = 0;
    for (const byte of frames) {
      slow.push(Buffer.from([byte]));
      if (takeFrame(slow) !== null) count++;
    }
    assert.equal(count, 3);
    for (const bad of [
      "0003 000000",
      "0201 0000",
      "0004 0000 05 00",
      "0006 0000 01 00 02 0035",
      "000c 0000 01 00 03 0035 01 08080808",
    ])
      assert.throws(() => takeFrame(queueOf(hex(bad), Buffer.alloc(600))), ProtocolError, bad);
    const property = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const queue = queueOf(bytes);
      try {
        while (takeFrame(queue) !== null);
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    });
    fc.assert(property, { numRuns: runs(500) });
  });

  test("XUDP: the first frame is New, replies keep their source", () => {
    const framing = xudpFraming();
    const packet = { payload: Buffer.from("abc"), destination: named };
    assert.equal(framing.encode(packet)[4], STATUS_NEW);
    assert.equal(framing.encode(packet)[4], STATUS_KEEP);
    const reply = hex("000c 0000 02 01 02 0035 01 08080404 0003 646566 0004 0000 02 01 0001 67");
    const queue = queueOf(reply);
    assert.equal(framing.take(queue)?.destination.ip, "8.8.4.4");
    assert.equal(framing.take(queue)?.destination.ip, "8.8.4.4"); // no address: the last one
    assert.throws(() => framing.take(queueOf(hex("0004 0000 03 00"))), ProtocolError);
  });

  test("packetaddr", () => {
    const packet = { payload: Buffer.from("abc"), destination: addressed };
    const bytes = packetAddrFraming.encode(packet);
    assert.deepEqual(bytes, hex("000a 01 08080808 0035 616263"));
    assert.deepEqual(packetAddrFraming.take(queueOf(bytes)), packet);
    for (let size = 0; size < bytes.length; size++) {
      assert.equal(packetAddrFraming.take(queueOf(bytes.subarray(0, size))), null);
      assert.equal(peekPacketAddr(bytes.subarray(0, size)), null);
    }
    assert.throws(() => packetAddrFraming.take(queueOf(hex("0001 03"))), ProtocolError);
    assert.throws(() => packetAddrFraming.encode({ ...packet, destination: named }));
  });
});
