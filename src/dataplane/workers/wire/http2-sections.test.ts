import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EAGAIN } from "#platform/linux/relay-calls.ts";
import * as http2 from "#transport/http2/frames.ts";
import { STREAM_WINDOW_BYTES } from "#transport/http2/windows.ts";
import {
  NOTHING,
  frame,
  section,
  headers,
  OK,
  data,
  begun,
  refuses,
  said,
} from "../../../../test/support/http2-peer.ts";

const { DATA, HEADERS, CONTINUATION, WINDOW_UPDATE, PING, END_STREAM, END_HEADERS, PADDED, PRIORITY } = http2;

describe("sections", () => {
  const CUT = [...section(OK, ["x-more", "y".repeat(500)])];

  test("are torn into any number of frames", () => {
    const { peer, stream } = begun();
    const first = frame(HEADERS, END_STREAM, 1, NOTHING);
    const more = CUT.map((byte) => frame(CONTINUATION, 0, 1, Buffer.of(byte)));
    peer.says(first, ...more);
    assert.equal(peer.read(stream).last, EAGAIN);
    peer.says(frame(CONTINUATION, END_HEADERS, 1, NOTHING));
    assert.equal(peer.read(stream).last, 0);
  });

  test("have priorities, which mean nothing", () => {
    const { peer, stream } = begun();
    const payload = Buffer.concat([Buffer.alloc(5), section(OK)]);
    peer.says(
      frame(HEADERS, PRIORITY | END_HEADERS | END_STREAM, 1, payload),
      frame(2, 0, 1, Buffer.alloc(5)),
    );
    assert.equal(peer.read(stream).last, 0);
  });

  test("of streams that are over are heard: later ones refer to them", () => {
    const { peer, stream } = begun();
    const kept = Buffer.from("4001610162", "hex");
    peer.says(frame(HEADERS, END_HEADERS, 77, Buffer.concat([Buffer.of(0x88), kept])));
    peer.says(frame(HEADERS, END_HEADERS | END_STREAM, 1, Buffer.of(0x88, 0xbe)));
    assert.equal(peer.read(stream).last, 0);
  });

  test("are 64 KiB at most, in whatever frames", () => {
    const piece = Buffer.alloc(16_000);
    const begin = frame(HEADERS, 0, 1, piece);
    const more = frame(CONTINUATION, 0, 1, piece);
    const { peer, stream } = begun();
    peer.says(begin, more, more, more);
    assert.ok(peer.session.isUsable);
    peer.says(more);
    peer.hasRefused(stream);
    const other = begun();
    other.peer.says(frame(HEADERS, 0, 1, NOTHING));
    other.peer.says(...Array.from({ length: 10_000 }, () => frame(CONTINUATION, 0, 1, NOTHING)));
    other.peer.hasRefused(other.stream);
  });

  const OPEN = frame(HEADERS, 0, 1, Buffer.of(0x88));
  refuses("with another frame in between", OPEN, frame(PING, 0, 0, Buffer.alloc(8)));
  refuses("with data in between", OPEN, data(1, "x"));
  refuses("of another stream in between", OPEN, frame(CONTINUATION, END_HEADERS, 3, NOTHING));
  refuses("with another one in between", OPEN, headers(3, 0, OK));
  refuses("without a beginning", frame(CONTINUATION, END_HEADERS, 1, NOTHING));
  refuses("that are not HPACK", frame(HEADERS, END_HEADERS, 1, Buffer.of(0xff)));
  refuses("of no stream", headers(0, 0, OK));
  refuses("shorter than their priority", frame(HEADERS, PRIORITY | END_HEADERS, 1, Buffer.alloc(4)));
});

describe("padding", () => {
  const padded = (text: string, padding: number, flags = 0, id = 1): Buffer =>
    frame(
      DATA,
      PADDED | flags,
      id,
      Buffer.concat([Buffer.of(padding), Buffer.from(text), Buffer.alloc(padding, "P")]),
    );

  test("is passed over, and counts", () => {
    const { peer, stream } = begun();
    peer.says(padded("a", 0), padded("", 0), padded("", 255), padded("b", 255), padded("c", 3), data(1, "d"));
    assert.equal(peer.read(stream).text, "abcd");
    peer.says(padded("x", 7, 0, 99), padded("", 7, END_STREAM, 99), data(1, "e"));
    assert.equal(peer.read(stream).text, "e");
    let granted = 0;
    for (let rounds = 0; rounds < 100; rounds++) {
      peer.says(...Array.from({ length: 500 }, () => padded("", 255)));
      for (const [, id, bytes] of said(peer, WINDOW_UPDATE)) if (id === 1) granted += bytes ?? 0;
    }
    assert.ok(granted > 100 * 500 * 256 - STREAM_WINDOW_BYTES);
  });

  test("behind an end", () => {
    for (const text of ["", "text"]) {
      const { peer, stream } = begun();
      peer.says(padded(text, 9, END_STREAM), frame(PING, 0, 0, Buffer.alloc(8)));
      assert.deepEqual(peer.read(stream), { text, last: 0 });
      assert.deepEqual(said(peer, PING), [[PING, 0, 8]]);
    }
  });

  test("in any pieces", () => {
    const { peer, stream } = begun();
    const head = frame(
      HEADERS,
      PADDED | END_HEADERS,
      1,
      Buffer.concat([Buffer.of(2), section(OK), Buffer.alloc(2)]),
    );
    const all = Buffer.concat([padded("ab", 5), padded("", 2), head, padded("c", 1, END_STREAM)]);
    for (const byte of all) peer.says(Buffer.of(byte));
    assert.deepEqual(peer.read(stream), { text: "abc", last: 0 });
  });

  refuses("longer than its frame", frame(DATA, PADDED, 1, Buffer.of(4, 0, 0, 0)));
  refuses("without its length", frame(DATA, PADDED, 1, NOTHING));
  refuses("longer than its section", frame(HEADERS, PADDED | END_HEADERS, 1, Buffer.of(2, 0x88)));
  refuses("without its length, of a section", frame(HEADERS, PADDED | END_HEADERS, 1, NOTHING));
});
