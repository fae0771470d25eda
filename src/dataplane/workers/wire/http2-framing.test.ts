import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Http2Recipe } from "#core/wire-recipe.ts";
import { EAGAIN, EPIPE } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import * as http2 from "#transport/http2/frames.ts";
import { SectionDecoder } from "#transport/http2/hpack.ts";
import { CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES } from "#transport/http2/windows.ts";
import {
  NOTHING,
  REQUEST,
  frame,
  number,
  settings,
  headers,
  OK,
  data,
  Peer,
  begun,
  refuses,
  said,
} from "../../../../test/support/http2-peer.ts";
import { runs } from "../../../../test/support/runs.ts";

const { DATA, HEADERS, SETTINGS, WINDOW_UPDATE, GOAWAY, RST_STREAM, PING, END_STREAM, END_HEADERS, ACK } =
  http2;

describe("what goes out first", () => {
  test("preface, settings, a window for all, and the requests", () => {
    const peer = new Peer();
    peer.open();
    peer.open();
    const [first, window, ...requests] = peer.heard();
    assert.deepEqual(first && [first.type, first.id, first.payload.toString("hex")], [
      SETTINGS,
      0,
      "0002000000000004" + STREAM_WINDOW_BYTES.toString(16).padStart(8, "0"),
    ]);
    assert.deepEqual(window && [window.type, window.id, window.payload.readUInt32BE()], [
      WINDOW_UPDATE,
      0,
      CONNECTION_WINDOW_BYTES - 65_535,
    ]);
    const decoder = new SectionDecoder();
    assert.deepEqual(
      requests.map(({ type, flags, id, payload }) => [type, flags, id, decoder.decode(payload)]),
      [1, 3].map((id) => [HEADERS, END_HEADERS, id, REQUEST]),
    );
  });

  test("any of several requests", () => {
    const requests = ["a", "b"].map((host) => [[":authority", host]] as const);
    const peer = new Peer({ requests });
    for (let at = 0; at < 64; at++) peer.open();
    const decoder = new SectionDecoder();
    const sections = peer.heard().filter(({ type }) => type === HEADERS);
    const hosts = new Set(sections.map(({ payload }) => decoder.decode(payload)[0]?.[1]));
    assert.deepEqual(hosts, new Set(["a", "b"]));
  });

  test("an end is an empty frame, one that is given up is cancelled, one that is over is not", () => {
    const { peer, stream } = begun();
    stream.endWriting(peer.io);
    stream.endWriting(peer.io);
    assert.deepEqual(
      peer.heard().map(({ type, flags, id, payload }) => [type, flags, id, payload.length]),
      [[DATA, END_STREAM, 1, 0]],
    );
    const second = peer.open();
    second.drop();
    assert.deepEqual(said(peer, RST_STREAM), [[RST_STREAM, 3, http2.CANCEL]]);
    peer.says(headers(1, END_STREAM, OK));
    stream.drop();
    assert.deepEqual(said(peer, RST_STREAM), []);
    peer.says(data(3, "late"), number(WINDOW_UPDATE, 3, 9), headers(3, END_STREAM, OK));
    assert.ok(peer.session.isUsable);
  });
});

describe("answers", () => {
  test("a status other than 200 is a refusal, and so is one of gRPC other than 0", () => {
    const answers = [
      [[":status", "404"]],
      [[":status", "204"]],
      [OK, ["grpc-status", "12"]],
      [[":status", "502"]],
    ] as const;
    for (const fields of answers)
      for (const flags of [0, END_STREAM]) {
        const { peer, stream } = begun({ isGrpc: true });
        const other = peer.open();
        peer.says(headers(1, flags, ...fields));
        peer.says(data(1, "a page"), headers(3, 0, OK));
        assert.equal(peer.read(stream).last, BROKEN);
        assert.equal(stream.write(peer.io, 4), BROKEN);
        assert.equal(peer.read(other).last, EAGAIN);
        peer.heard();
        stream.drop();
        assert.equal(said(peer, RST_STREAM).length, 1);
      }
  });

  test("what comes ahead of the answer is not it", () => {
    const { peer, stream } = begun();
    peer.says(headers(1, 0, [":status", "100"]), headers(1, 0, [":status", "103"], ["link", "x"]));
    assert.equal(peer.read(stream).last, EAGAIN);
    peer.says(headers(1, 0, OK), data(1, "here", END_STREAM));
    assert.deepEqual(peer.read(stream), { text: "here", last: 0 });
  });

  refuses("one ahead of the answer is not the last", headers(1, END_STREAM, [":status", "103"]));

  test("trailers end a stream, behind all of its data", () => {
    const { peer, stream } = begun({ isGrpc: true });
    const message = Buffer.of(0, 0, 0, 0, 3, 0x0a, 1, 0x61);
    peer.says(headers(1, 0, OK), data(1, message), headers(1, END_STREAM, ["grpc-status", "0"]));
    assert.deepEqual(peer.read(stream), { text: "a", last: 0 });
    assert.equal(peer.write(stream, 100), 100); // the other way is open still
    stream.endWriting(peer.io);
    peer.heard();
    stream.drop();
    assert.deepEqual(said(peer, RST_STREAM), []);
  });

  test("a message that is none costs its stream alone", () => {
    const { peer, stream } = begun({ isGrpc: true });
    const other = peer.open();
    peer.says(data(1, Buffer.of(1, 0, 0, 0, 0)), data(3, Buffer.of(0, 0, 0, 0, 3, 0x0a, 1, 0x61)));
    assert.equal(peer.read(stream).last, BROKEN);
    assert.equal(peer.read(other).text, "a");
  });

  test("a reset of no error is an end, any other is a reset", () => {
    const { peer, stream } = begun();
    const other = peer.open();
    peer.says(data(1, "one"), data(3, "other"));
    peer.says(number(RST_STREAM, 1, http2.NO_ERROR), number(RST_STREAM, 3, http2.CANCEL));
    assert.deepEqual(peer.read(stream), { text: "one", last: 0 });
    assert.deepEqual(peer.read(other), { text: "other", last: BROKEN });
    assert.ok(peer.session.isUsable);
  });

  test("a connection that is lost is a fault, behind an end, too", () => {
    const { peer, stream } = begun();
    peer.says(headers(1, 0, OK), data(1, "one", END_STREAM));
    peer.wire.hasEnded = true;
    peer.says(NOTHING);
    assert.equal(peer.session.isUsable, false);
    assert.equal(stream.write(peer.io, 10), BROKEN);
    assert.deepEqual(peer.read(stream), { text: "one", last: 0 });
  });

  test("of a stream that the peer has reset nothing more is said, of one that it broke a reset is", () => {
    const { peer, stream } = begun({ isGrpc: true });
    const [second, third] = [peer.open(), peer.open()];
    peer.says(number(RST_STREAM, 1, http2.CANCEL), number(RST_STREAM, 3, http2.NO_ERROR));
    peer.says(data(5, Buffer.of(1, 0, 0, 0, 0))); // no message
    peer.heard();
    for (const one of [stream, second, third]) {
      one.endWriting(peer.io);
      one.drop();
    }
    const frames = peer.heard().map(({ type, id }) => [type, id]);
    assert.deepEqual(
      frames.filter(([, id]) => id !== 5),
      [],
    );
    assert.ok(frames.some(([type]) => type === RST_STREAM));
  });

  test("a reset says that nothing more is taken, behind an end, too, and leaves what was said", () => {
    const { peer, stream } = begun();
    const [second, third] = [peer.open(), peer.open()];
    peer.says(headers(1, 0, OK), data(1, "one", END_STREAM), data(3, "two"), data(5, "three"));
    assert.equal(peer.write(stream, 10), 10);
    peer.woken.length = 0;
    const codes = [http2.NO_ERROR, http2.NO_ERROR, http2.CANCEL];
    peer.says(...codes.map((code, at) => number(RST_STREAM, 1 + 2 * at, code)));
    const streams = [stream, second, third];
    assert.ok(streams.every((one) => peer.woken.includes(one) && one.writable));
    assert.deepEqual(
      streams.map((one) => one.write(peer.io, 10)),
      [EPIPE, EPIPE, BROKEN],
    );
    assert.deepEqual(peer.read(stream), { text: "one", last: 0 });
    assert.deepEqual(peer.read(second), { text: "two", last: 0 });
  });

  refuses("half a reset", frame(RST_STREAM, 0, 1, Buffer.alloc(3)));
  refuses("a reset of no stream", number(RST_STREAM, 0, 0));
});

describe("the connection", () => {
  const away = (last: number, code = http2.NO_ERROR) => http2.encodeGoAway(last, code);

  test("pings are answered with what they say", () => {
    const { peer } = begun();
    peer.says(frame(PING, 0, 0, Buffer.from("12345678")), frame(PING, ACK, 0, Buffer.from("87654321")));
    assert.deepEqual(
      peer.heard().map(({ type, flags, payload }) => [type, flags, String(payload)]),
      [[PING, ACK, "12345678"]],
    );
  });

  test("pings are sent where the node has them, and an answer is missed", (t) => {
    let nowMs = 1_000;
    t.mock.method(performance, "now", () => nowMs);
    for (const answers of [true, false]) {
      const { peer, stream } = begun({ pingIntervalMs: 20_000 });
      let pings = 0;
      for (let ticks = 0; ticks < 10; ticks++) {
        nowMs += 15_000;
        const count = peer.heard().filter(({ type }) => type === PING).length;
        pings += count;
        if (answers && count > 0) peer.says(frame(PING, ACK, 0, Buffer.alloc(8)));
      }
      assert.equal(pings, answers ? 5 : 3);
      assert.equal(peer.session.isUsable, answers);
      assert.equal(peer.read(stream).last, answers ? EAGAIN : BROKEN);
    }
    const { peer } = begun();
    for (let ticks = 0; ticks < 10; ticks++) {
      nowMs += 15_000;
      assert.deepEqual(peer.heard(), []);
    }
    assert.ok(peer.session.isUsable);
  });

  test("a server that goes away keeps what it has taken, and no other", () => {
    const { peer, stream } = begun();
    const [second, third] = [peer.open(), peer.open()];
    peer.heard();
    peer.says(away(0x7fff_ffff));
    assert.equal(peer.session.isUsable, false);
    assert.deepEqual(
      [stream, second, third].map((one) => peer.read(one).last),
      [EAGAIN, EAGAIN, EAGAIN],
    );
    peer.says(away(3));
    peer.says(data(1, "one"), data(3, "two"));
    assert.equal(peer.read(third).last, BROKEN);
    assert.equal(peer.read(stream).text, "one");
    assert.equal(peer.read(second).text, "two");
    assert.equal(peer.write(stream, 10), 10);
    for (const one of [third, second]) one.drop();
    peer.turns();
    assert.equal(peer.session.isOver, false);
    peer.says(data(1, "last", END_STREAM));
    assert.deepEqual(peer.read(stream), { text: "last", last: 0 });
    stream.endWriting(peer.io);
    stream.drop();
    assert.deepEqual(
      peer
        .heard()
        .slice(-1)
        .map(({ type, payload }) => [type, payload.readUInt32BE(4)]),
      [[GOAWAY, http2.NO_ERROR]],
    );
  });

  test("what a server says of all streams is told them once a turn", () => {
    const { peer, stream } = begun();
    let [told, looked] = [0, 0];
    const widen = stream.widen.bind(stream);
    stream.widen = (bytes) => ++told > 0 && widen(bytes);
    Object.defineProperty(stream, "id", { get: () => (++looked, 1) });
    const all = Array.from({ length: 1_000 }, (_, at) => [
      away(0x7fff_ffff - 2 * at),
      settings([http2.INITIAL_WINDOW_SIZE, 70_000 + at]),
    ]);
    const read = peer.wire.read.bind(peer.wire);
    peer.wire.read = (io, size) => read(io, Math.min(size, 4_000)); // as records are
    peer.says(...all.flat());
    assert.ok(told > 0 && told <= 3, `windows: ${told} times`);
    assert.ok(looked > 0 && looked <= 3, `an end: ${looked} times`);
    assert.equal(peer.write(stream, 100_000), 65_535);
    peer.says(number(WINDOW_UPDATE, 0, 100_000));
    assert.equal(peer.write(stream, 100_000), 70_999 - 65_535);
  });

  test("streams are as many as the server takes, and as the node does", () => {
    const most = (recipe: Partial<Http2Recipe>, ...frames: readonly Uint8Array[]) => {
      const peer = new Peer(recipe);
      peer.says(...frames);
      let streams = 0;
      for (; streams < 1_000 && peer.session.isUsable; streams++) peer.open();
      return streams;
    };
    const takes = (count: number) => settings([http2.MAX_CONCURRENT_STREAMS, count]);
    assert.equal(most({}), 100);
    assert.equal(most({}, settings()), 100);
    assert.equal(most({}, takes(7)), 7);
    assert.equal(most({}, takes(0)), 0);
    assert.equal(most({}, takes(500)), 500);
    assert.equal(most({ maxStreams: 5 }, takes(7)), 5);
    assert.equal(most({ maxStreams: 9 }, takes(7)), 7);
  });

  test("frames that are not known are passed over, of streams and of none", () => {
    const { peer, stream } = begun();
    peer.says(
      frame(0x42, 0xff, 1, Buffer.alloc(16_384)),
      frame(0x0a, 0, 0, NOTHING),
      frame(0x10, 0, 0, Buffer.of(1)),
    );
    peer.says(data(1, "here"));
    assert.equal(peer.read(stream).text, "here");
  });

  test("whatever a server says, streams read and write on, or fail", () => {
    const one = fc
      .record({
        type: fc.integer({ min: 0, max: 11 }),
        flags: fc.integer({ min: 0, max: 255 }),
        id: fc.integer({ min: 0, max: 5 }),
        payload: fc.uint8Array({ maxLength: 40 }),
      })
      .map(({ type, flags, id, payload }) => frame(type, flags, id, payload));
    const bytes = fc.oneof(one, one, one, one, fc.uint8Array({ maxLength: 40 }));
    const property = fc.property(fc.array(bytes, { maxLength: 30 }), fc.boolean(), (frames, isGrpc) => {
      const { peer, stream } = begun({ isGrpc });
      const second = peer.open();
      for (const bytes of frames) {
        peer.says(bytes);
        peer.write(stream, 100);
        if (stream.readable) peer.read(stream);
      }
      for (const one of [stream, second]) one.drop();
      peer.heard();
      peer.session.drop(peer.io);
      assert.equal(peer.io.bufferedBytes, 0);
    });
    fc.assert(property, { numRuns: runs(1_000) });
  });

  const long = Buffer.alloc(16_385);
  refuses("a frame over 16,384 bytes", frame(0x42, 0, 0, long));
  refuses("data over 16,384 bytes", frame(DATA, 0, 1, long));
  refuses("a push", frame(http2.PUSH_PROMISE, END_HEADERS, 1, Buffer.alloc(4)));
  refuses("an empty push", frame(http2.PUSH_PROMISE, END_HEADERS, 1, NOTHING));
  refuses("data of no stream", data(0, "x"));
  refuses("half a ping", frame(PING, 0, 0, Buffer.alloc(7)));
  refuses("a ping of a stream", frame(PING, 0, 1, Buffer.alloc(8)));
  refuses("half an end", frame(GOAWAY, 0, 0, Buffer.alloc(7)));
  refuses("an end of a stream", frame(GOAWAY, 0, 1, Buffer.alloc(8)));
  refuses("HTTP/1.1", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"));
});
