import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BROKEN } from "#platform/linux/ssl.ts";
import { GunCodec } from "#transport/grpc/codec.ts";
import * as http2 from "#transport/http2/frames.ts";
import { CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES } from "#transport/http2/windows.ts";
import type { NodeMuxStream } from "./node-mux-stream.ts";
import {
  NOTHING,
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

const { DATA, SETTINGS, WINDOW_UPDATE, ACK } = http2;

describe("windows of sending", () => {
  test("a stream sends what it may, and more once it is granted", () => {
    const { peer, stream } = begun();
    assert.equal(peer.write(stream, 200_000), 65_535);
    assert.equal(peer.sent(1), 65_535);
    peer.says(number(WINDOW_UPDATE, 1, 100));
    assert.equal(stream.writable, false); // the connection takes nothing
    peer.woken.length = 0;
    peer.says(number(WINDOW_UPDATE, 0, 1_000));
    assert.deepEqual(peer.woken, [stream]);
    assert.equal(peer.write(stream, 200_000), 100);
    peer.says(number(WINDOW_UPDATE, 1, 5_000));
    assert.equal(peer.write(stream, 200_000), 900);
    assert.equal(peer.sent(1), 1_000);
  });

  test("messages of gRPC count with their heads", () => {
    for (const window of [65_535, 16_384 + 5, 16_384 + 9, 16_384 + 10, 3 * 16_384, 10, 9, 1]) {
      const { peer, stream } = begun({ isGrpc: true });
      peer.says(settings([http2.INITIAL_WINDOW_SIZE, window]));
      peer.heard();
      const taken = peer.write(stream, 200_000);
      const frames = peer.heard().filter(({ type }) => type === DATA);
      const sent = frames.reduce((sum, { payload }) => sum + payload.length, 0);
      assert.ok(sent <= window && sent > window - 10, `${sent} of ${window}`);
      let got = 0;
      const codec = new GunCodec();
      for (const { payload } of frames) codec.open(payload, (bytes) => (got += bytes.length));
      assert.equal(got, taken);
      assert.equal(stream.writable, false);
      peer.woken.length = 0;
      peer.says(number(WINDOW_UPDATE, 1, 50));
      assert.equal(peer.woken.includes(stream), stream.writable, `${window}`);
      if (window === 65_535) peer.says(number(WINDOW_UPDATE, 0, 50));
      assert.ok(peer.woken.includes(stream) && peer.write(stream, 9) === 9, `${window}`);
    }
  });

  test("settings change the windows of streams that are open, below nothing, too", () => {
    const { peer, stream } = begun();
    assert.equal(peer.write(stream, 10_000), 10_000);
    peer.says(settings([http2.INITIAL_WINDOW_SIZE, 4_000]));
    assert.equal(stream.writable, false);
    assert.equal(peer.write(peer.open(), 10_000), 4_000);
    peer.says(number(WINDOW_UPDATE, 1, 6_000));
    assert.equal(stream.writable, false); // it is at nothing now
    peer.says(number(WINDOW_UPDATE, 1, 7));
    assert.equal(peer.write(stream, 10_000), 7);
    peer.woken.length = 0;
    peer.says(settings([http2.INITIAL_WINDOW_SIZE, 4_011]));
    assert.equal(peer.write(stream, 10_000), 11);
    assert.ok(peer.woken.includes(stream));
  });

  test("settings are answered, each", () => {
    const { peer } = begun();
    peer.says(settings(), settings([0x4242, 9], [1, 0], [5, 16_384]), frame(SETTINGS, ACK, 0, NOTHING));
    assert.deepEqual(
      peer.heard().map(({ type, flags, payload }) => [type, flags, payload.length]),
      [
        [SETTINGS, ACK, 0],
        [SETTINGS, ACK, 0],
      ],
    );
  });

  test("uploads take turns where the connection takes little", () => {
    const peer = new Peer();
    const streams = [peer.open(), peer.open(), peer.open()];
    peer.says(settings([http2.INITIAL_WINDOW_SIZE, 10_000_000]));
    peer.heard();
    const taken = new Map(streams.map((stream) => [stream, 0]));
    const all = (): void => {
      const woken = peer.woken.splice(0);
      for (const stream of new Set(woken)) {
        const bytes = peer.write(stream, 10_000_000, 1);
        taken.set(stream, (taken.get(stream) ?? 0) + bytes);
      }
    };
    peer.woken.push(...streams);
    all();
    for (let rounds = 0; rounds < 30; rounds++) {
      peer.says(number(WINDOW_UPDATE, 0, 30_000));
      all();
    }
    for (const [stream, bytes] of taken) assert.ok(bytes >= 200_000, `${stream.id} has sent ${bytes}`);
  });

  const LARGE = number(WINDOW_UPDATE, 1, 0x7fff_ffff);
  refuses("a stream's window beyond what there is", LARGE);
  refuses("the connection's, too", number(WINDOW_UPDATE, 0, 0x7fff_ffff));
  refuses("by settings", number(WINDOW_UPDATE, 1, 9), settings([http2.INITIAL_WINDOW_SIZE, 0x7fff_ffff]));
  refuses("a first window that is none", settings([http2.INITIAL_WINDOW_SIZE, 0x8000_0000]));
  refuses("a window that grows by nothing", number(WINDOW_UPDATE, 1, 0));
  refuses("half a window", frame(WINDOW_UPDATE, 0, 1, Buffer.alloc(3)));
  refuses("half a setting", frame(SETTINGS, 0, 0, Buffer.alloc(5)));
  refuses("settings of a stream", frame(SETTINGS, 0, 1, NOTHING));
  refuses("an answer with settings", frame(SETTINGS, ACK, 0, Buffer.alloc(6)));
});

describe("windows of receiving", () => {
  const piece = Buffer.alloc(16_384, "x");
  const fill = (bytes: number, id = 1): Buffer[] => {
    const whole = Array.from({ length: Math.floor(bytes / piece.length) }, () => data(id, piece));
    const rest = bytes % piece.length;
    return rest === 0 ? whole : [...whole, data(id, piece.subarray(0, rest))];
  };

  test("what is read is granted again, and what only came is not", () => {
    const { peer, stream } = begun();
    peer.says(headers(1, 0, OK), ...fill(STREAM_WINDOW_BYTES));
    assert.deepEqual(
      said(peer, WINDOW_UPDATE).filter(([, id]) => id !== 0),
      [],
    );
    assert.equal(peer.read(stream).text.length, STREAM_WINDOW_BYTES);
    const granted = said(peer, WINDOW_UPDATE).filter(([, id]) => id === 1);
    assert.equal(
      granted.reduce((sum, [, , bytes]) => sum + (bytes ?? 0), 0),
      STREAM_WINDOW_BYTES,
    );
    peer.says(...fill(STREAM_WINDOW_BYTES));
    assert.ok(peer.session.isUsable);
  });

  test("a byte beyond a stream's window ends the connection", () => {
    const { peer, stream } = begun();
    peer.says(...fill(STREAM_WINDOW_BYTES));
    assert.ok(peer.session.isUsable);
    peer.says(data(1, "x"));
    peer.hasRefused();
    assert.equal(peer.read(stream).last, BROKEN);
  });

  test("the connection's is granted as it comes, of streams that are not known, too", () => {
    const { peer } = begun();
    for (let rounds = 0; rounds < 4; rounds++) {
      peer.says(...fill(CONNECTION_WINDOW_BYTES / 2, 99));
      const bytes = said(peer, WINDOW_UPDATE).reduce(
        (sum, [, id, more]) => sum + (id === 0 ? (more ?? 0) : 0),
        0,
      );
      assert.equal(bytes, CONNECTION_WINDOW_BYTES / 2);
    }
  });

  test("a window may be filled behind a smaller first one, in one read", () => {
    const { peer } = begun();
    peer.says(settings([http2.INITIAL_WINDOW_SIZE, 0]), number(WINDOW_UPDATE, 1, 0x7fff_ffff));
    assert.ok(peer.session.isUsable);
    peer.says(number(WINDOW_UPDATE, 1, 1));
    assert.equal(peer.session.isUsable, false);
  });

  test("what waits for readers is not granted to others, and frames behind it are read", () => {
    const peer = new Peer();
    const streams = [peer.open(), peer.open(), peer.open()];
    const [first, second, third] = streams as [NodeMuxStream, NodeMuxStream, NodeMuxStream];
    const granted = (): number =>
      said(peer, WINDOW_UPDATE).reduce((sum, [, id, more]) => sum + (id === 0 ? (more ?? 0) : 0), 0);
    granted();
    peer.says(...fill(STREAM_WINDOW_BYTES, 1), ...fill(STREAM_WINDOW_BYTES, 3));
    assert.equal(granted(), 0);
    assert.equal(peer.write(third, 200_000), 65_535);
    peer.says(number(WINDOW_UPDATE, 5, 1_000), number(WINDOW_UPDATE, 0, 1_000));
    assert.equal(peer.write(third, 200_000), 1_000);
    assert.equal(peer.read(first).text.length, STREAM_WINDOW_BYTES);
    assert.equal(granted(), STREAM_WINDOW_BYTES);
    peer.says(...fill(STREAM_WINDOW_BYTES, 5));
    assert.equal(granted(), 0);
    second.drop(); // what it had waiting is thrown away
    assert.equal(granted(), STREAM_WINDOW_BYTES);
    peer.says(data(5, "x"));
    peer.hasRefused(third);
  });

  test("where slow readers have all of the connection's window, others wait for little", () => {
    const { peer, stream } = begun();
    const other = peer.open();
    peer.says(...fill(STREAM_WINDOW_BYTES, 1), ...fill(STREAM_WINDOW_BYTES, 3));
    said(peer, WINDOW_UPDATE);
    for (const one of [stream, other]) {
      assert.equal(one.read(peer.io, 65_536), 65_536);
      assert.deepEqual(said(peer, WINDOW_UPDATE), [[WINDOW_UPDATE, 0, 65_536]]);
    }
    assert.equal(stream.read(peer.io, 65_536), 65_536);
    assert.deepEqual(said(peer, WINDOW_UPDATE), []); // not used up yet
  });

  test("heads of messages are granted again, and what is no data", () => {
    const { peer, stream } = begun({ isGrpc: true });
    const message = Buffer.concat([Buffer.of(0, 0, 0, 0, 3, 0x0a, 1, 0x61)]);
    const many = Buffer.concat(Array.from({ length: 2_000 }, () => message));
    const other = Buffer.concat([Buffer.of(0, 0, 0, 0x3e, 0x83, 0x12, 0x80, 0x7d), Buffer.alloc(16_000)]);
    let [sent, granted] = [0, 0];
    for (let rounds = 0; rounds < 600; rounds++) {
      const body = rounds % 2 === 0 ? many : other;
      sent += body.length;
      assert.ok(sent <= STREAM_WINDOW_BYTES + granted);
      peer.says(data(1, body));
      assert.equal(peer.read(stream).text.length, rounds % 2 === 0 ? 2_000 : 0);
      for (const [, id, bytes] of said(peer, WINDOW_UPDATE)) if (id === 1) granted += bytes ?? 0;
    }
    assert.ok(granted > sent - STREAM_WINDOW_BYTES / 2 - 1);
    assert.ok(peer.session.isUsable);
  });
});
