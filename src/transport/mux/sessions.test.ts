import assert from "node:assert/strict";
import { once } from "node:events";
import { type Duplex, duplexPair } from "node:stream";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { SILENT } from "#core/log.ts";
import { runs, skipLarge } from "../../../test/support/runs.ts";
import { openMuxClient, serveMux } from "./open.ts";
import { MUX_PROTOCOLS } from "./preface.ts";
import { MAX_STREAMS, type OpenMuxSession } from "./session.ts";
import { SmuxSession } from "./smux.ts";
import * as smux from "./smux-frame.ts";
import { YamuxSession } from "./yamux.ts";
import * as yamux from "./yamux-frame.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const noop = (): void => {};

async function until(what: () => boolean): Promise<void> {
  for (let turns = 0; !what(); turns++) {
    assert.ok(turns < 100_000, "it never came");
    await turn();
  }
}

interface Pair {
  readonly client: OpenMuxSession;
  readonly near: Duplex;
  readonly far: Duplex;
  readonly closed: { client: boolean; server: boolean };
}

function pair(protocol: (typeof MUX_PROTOCOLS)[number], onStream: (stream: Duplex) => void): Pair {
  const [near, far] = duplexPair();
  far.on("error", noop);
  const closed = { client: false, server: false };
  void serveMux(far, {
    onStream,
    needsPadding: false,
    onClosed: () => (closed.server = true),
    log: SILENT,
  }).catch(noop);
  const client = openMuxClient(
    near,
    { protocol, padding: false },
    { onStream: null, onClosed: () => (closed.client = true), log: SILENT },
  );
  return { client, near, far, closed };
}

for (const protocol of MUX_PROTOCOLS)
  describe(protocol, () => {
    test("streams side by side, each with its own bytes", { timeout: 20_000 }, async () => {
      const { client } = pair(protocol, (stream) => void stream.pipe(stream));
      const one = async (fill: number): Promise<void> => {
        const stream = client.open();
        const sent = Buffer.alloc(300_000, fill);
        let got = 0;
        stream.on("data", (data: Buffer) => {
          assert.ok(data.every((byte) => byte === fill));
          if ((got += data.length) === sent.length) stream.destroy();
        });
        stream.write(sent);
        await once(stream, "close");
        assert.equal(got, sent.length);
      };
      await Promise.all(Array.from({ length: 10 }, (_, index) => one(index)));
      client.close(null);
    });

    test("a session that breaks before its stream has a listener costs that stream alone", async () => {
      const { client, far } = pair(protocol, noop);
      const stream = client.open();
      client.close(new Error("nonsense was said"));
      await turn(); // an error without a listener would be the process's
      await until(() => stream.closed);
      far.destroy();
    });

    test("a write of nothing holds nothing up", async () => {
      const { client } = pair(protocol, (stream) => void stream.pipe(stream));
      const stream = client.open().on("error", noop);
      stream.write(Buffer.alloc(0));
      stream.write("something");
      assert.equal(String((await once(stream, "data"))[0]), "something");
      client.close(null);
    });

    test("a reader that does not read holds its writer up, and no other", { timeout: 20_000 }, async () => {
      const { client } = pair(protocol, (stream) => {
        stream.once("data", (first: Buffer) => {
          if (first[0] === 1) stream.pause();
          else stream.write(first);
        });
      });
      const stuck = client.open();
      stuck.on("error", noop);
      let taken = 0;
      const block = Buffer.alloc(64 * 1024, 1);
      while (taken < 40 << 20 && stuck.write(block)) taken += block.length;
      for (let turns = 0; turns < 200; turns++) await turn();
      while (taken < 40 << 20 && !stuck.writableNeedDrain && stuck.write(block)) taken += block.length;
      assert.ok(taken < 40 << 20, `${taken} bytes were taken for a stream that is not read`);
      if (protocol !== "smux") {
        const other = client.open().on("error", noop);
        other.write(Buffer.from([2]));
        await once(other, "data");
      }
      client.close(null);
    });

    test("the connection's end is every stream's end", { timeout: 20_000 }, async () => {
      const accepted: Duplex[] = [];
      const { client, far, closed } = pair(protocol, (stream) => {
        accepted.push(stream);
        stream.resume();
      });
      const streams = [client.open(), client.open()];
      for (const stream of streams) stream.on("error", noop).write("x");
      await until(() => accepted.length === 2);
      far.destroy(); // what a user who is taken away meets
      await until(() => [...streams, ...accepted].every((stream) => stream.closed));
      await until(() => closed.client && closed.server);
      assert.equal(client.usable, false);
    });

    test("retired: no more streams, and the end comes with the last", { timeout: 20_000 }, async () => {
      const { client, closed } = pair(protocol, (stream) => void stream.pipe(stream));
      const stream = client.open();
      stream.write("still");
      client.retire();
      assert.equal(client.usable, false);
      assert.equal(String((await once(stream, "data"))[0]), "still");
      assert.equal(closed.client, false);
      stream.destroy();
      await until(() => closed.client && closed.server);
    });

    test("random bytes cost the session and nothing else", { timeout: 60_000 }, async () => {
      const property = fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        const [near, far] = duplexPair();
        near.on("error", noop);
        far.on("error", noop);
        const onStream = (stream: Duplex): void => void stream.resume();
        const serving = serveMux(far, { onStream, needsPadding: false, onClosed: noop, log: SILENT });
        near.write(Buffer.from([0, MUX_PROTOCOLS.indexOf(protocol)]));
        near.end(Buffer.from(bytes));
        near.resume();
        await serving;
        far.destroy();
      });
      await fc.assert(property, { numRuns: runs(100) });
    });
  });

/** A server's session and what it writes. */
function serverOf(
  Session: typeof SmuxSession | typeof YamuxSession,
  onStream: (stream: Duplex) => void = noop,
) {
  const [near, far] = duplexPair();
  near.on("error", noop);
  let closed = false;
  const session = new Session(far, { onStream, onClosed: () => (closed = true), log: SILENT });
  const written: Buffer[] = [];
  near.on("data", (data: Buffer) => written.push(data));
  const settle = async (): Promise<Buffer> => {
    for (let turns = 0; turns < 20; turns++) await turn();
    return Buffer.concat(written.splice(0));
  };
  return { near, session, settle, isClosed: () => closed };
}

describe("yamux frames", () => {
  const SYN_1 = "00 01 0001 00000001 00000000";

  test("a stream is accepted at once, with our window on top of the usual one", async () => {
    const { near, session, settle } = serverOf(YamuxSession);
    near.write(hex(SYN_1));
    assert.deepEqual(await settle(), hex("00 01 0002 00000001 000c0000"));
    session.close(null);
  });

  test("a ping is answered with its own value", async () => {
    const { near, session, settle } = serverOf(YamuxSession);
    near.write(hex("00 02 0001 00000000 0000002a"));
    assert.deepEqual(await settle(), hex("00 02 0002 00000000 0000002a"));
    session.close(null);
  });

  for (const [what, bytes] of Object.entries({
    "another version": "01 00 0000 00000001 00000000",
    "an unknown type": "00 04 0000 00000001 00000000",
    "data beyond the window": `${SYN_1} 00 00 0000 00000001 00100001`,
    "a stream that is open already": `${SYN_1} ${SYN_1}`,
    "a number that is not a client's": "00 01 0001 00000002 00000000",
    "windows beyond 32 bits": `${SYN_1} 00 01 0000 00000001 ffffffff`,
  }))
    test(`${what} ends the session with a word`, async () => {
      const { near, settle, isClosed } = serverOf(YamuxSession);
      near.write(hex(bytes));
      const written = await settle();
      assert.ok(isClosed());
      assert.deepEqual(written.subarray(-12), hex("00 03 0000 00000000 00000001"));
    });

  test("frames behind what waits for slow readers are read, up to a bound", { skip: skipLarge }, async () => {
    const { near, session, settle } = serverOf(YamuxSession);
    const frame = (type: number, flags: number, id: number, length: number): Buffer =>
      yamux.encodeHead(type, flags, id, length);
    const body = Buffer.alloc(yamux.OUR_WINDOW);
    /** Whether a ping behind all that is answered. */
    const isHeard = async (...frames: readonly Buffer[]): Promise<boolean> => {
      near.write(Buffer.concat([...frames, frame(yamux.PING, yamux.SYN, 0, 7)]));
      return (await settle()).includes(yamux.encodePingAnswer(7));
    };
    const fill = (id: number): Promise<boolean> =>
      isHeard(frame(yamux.WINDOW_UPDATE, yamux.SYN, id, 0), frame(yamux.DATA, 0, id, body.length), body);
    const most = yamux.MAX_HELD_BYTES / yamux.OUR_WINDOW;
    let filled = 0;
    while (filled < 2 * most && (await fill(1 + 2 * filled))) filled++;
    assert.ok(filled >= most && filled < 1.1 * most, `${filled} streams`); // a little is with their readers
    session.close(null);
  });

  test("pieces of a byte that wait are counted by what they cost", { skip: skipLarge }, async () => {
    const { near, session, settle } = serverOf(YamuxSession);
    near.write(hex(SYN_1));
    const piece = Buffer.concat([yamux.encodeHead(yamux.DATA, 0, 1, 1), Buffer.of(7)]);
    const pieces = Buffer.concat(Array.from({ length: 4096 }, () => piece));
    for (let sent = 4096; sent < yamux.OUR_WINDOW; sent += 4096) near.write(pieces);
    for (let turns = 0; turns < 500; turns++) await turn();
    near.write(yamux.encodeHead(yamux.PING, yamux.SYN, 0, 7));
    assert.ok(!(await settle()).includes(yamux.encodePingAnswer(7)));
    session.close(null);
  });

  test("data for a stream that is gone is passed over", async () => {
    const { near, session, settle, isClosed } = serverOf(YamuxSession);
    near.write(hex("00 00 0000 00000007 00000003 616263 00 02 0001 00000000 00000001"));
    assert.deepEqual(await settle(), hex("00 02 0002 00000000 00000001"));
    assert.ok(!isClosed());
    session.close(null);
  });

  test("one stream too many is reset, the others stay", async () => {
    const { near, session, settle } = serverOf(YamuxSession);
    for (let at = 0; at <= MAX_STREAMS; at++) {
      const frame = hex(SYN_1);
      frame.writeUInt32BE(1 + 2 * at, 4);
      near.write(frame);
    }
    await settle();
    assert.equal(session.streams, MAX_STREAMS);
    session.close(null);
  });

  test(
    "a peer that pings without reading loses its session, not our memory",
    { skip: skipLarge },
    async () => {
      const [near, far] = duplexPair();
      near.on("error", noop);
      let closed = false;
      new YamuxSession(far, { onStream: noop, onClosed: () => (closed = true), log: SILENT });
      const pings = Buffer.concat(Array.from({ length: 5000 }, () => hex("00 02 0001 00000000 00000001")));
      for (let sent = 0; !closed && sent < 64 << 20; sent += pings.length) {
        near.write(pings);
        await turn();
      }
      assert.ok(closed);
    },
  );
});

describe("smux frames", () => {
  test("an end, and data behind it, which is thrown away", async () => {
    let got = "";
    const { near, session, settle, isClosed } = serverOf(SmuxSession, (stream) =>
      stream.on("data", (data: Buffer) => (got += data)),
    );
    near.write(
      hex("01 00 0000 03000000  01 02 0200 03000000 6869  01 01 0000 03000000  01 02 0100 03000000 7a"),
    );
    await settle();
    assert.equal(got, "hi");
    assert.ok(!isClosed());
    session.close(null);
  });

  for (const [what, bytes] of Object.entries({
    "another version": "02 00 0000 03000000",
    "an unknown command": "01 04 0000 03000000",
    "an opening with data": "01 00 0100 03000000 00",
  }))
    test(`${what} ends the session`, async () => {
      const { near, settle, isClosed } = serverOf(SmuxSession);
      near.write(hex(bytes));
      await settle();
      assert.ok(isClosed());
    });
});

for (const [protocol, Session] of [
  ["smux", SmuxSession],
  ["yamux", YamuxSession],
] as const)
  test(`${protocol}: what streams of a turn say goes out in one write, an opening with its first bytes`, async () => {
    const [near, far] = duplexPair();
    const writes: Buffer[] = [];
    far.on("data", (data: Buffer) => writes.push(data));
    const session = new Session(near, { onStream: null, onClosed: noop, log: SILENT });
    const streams = [session.open(), session.open()];
    for (const stream of streams) stream.on("error", noop);
    await turn();
    await turn();
    assert.equal(writes.length, 0);
    for (const stream of streams) stream.write("x");
    await until(() => writes.length > 0);
    for (let turns = 0; turns < 20; turns++) await turn();
    assert.equal(writes.length, 1);
    const head = protocol === "smux" ? 8 : 12;
    assert.equal(writes[0]?.length, 2 * (2 * head + 1));
    streams[0]?.write(Buffer.alloc(64 * 1024));
    streams[1]?.write("y");
    session.close(null);
    await until(() => far.readableEnded);
    const sent = Buffer.concat(writes);
    assert.ok(sent.includes("y"), "frames that waited are out before the end");
  });

for (const [protocol, Session] of [
  ["smux", SmuxSession],
  ["yamux", YamuxSession],
] as const)
  test(
    `${protocol}: many streams that write to a slow peer do not look as if it asked without reading`,
    { skip: skipLarge },
    async () => {
      const [near, far] = duplexPair();
      const session = new Session(near, { onStream: null, onClosed: noop, log: SILENT });
      const streams = Array.from({ length: 200 }, () => session.open().on("error", noop));
      const data = Buffer.alloc(64 * 1024, "x");
      for (const stream of streams) stream.write(data);
      streams.pop()?.destroy();
      await turn();
      assert.ok(session.usable);
      assert.ok(near.writableLength < 1 << 20, `${near.writableLength} bytes wait in the connection`);
      let got = 0;
      far.on("data", (bytes: Buffer) => (got += bytes.length));
      await until(() => streams.every(({ writableLength }) => writableLength === 0));
      await until(() => got > streams.length * data.length);
      session.close(null);
    },
  );

for (const readsOn of [false, true])
  test(`smux: a client that has ended a stream gets more of it for a second, or as long as it reads on: ${readsOn}`, async (t) => {
    let nowMs = 0;
    t.mock.method(performance, "now", () => nowMs);
    const [near, far] = duplexPair();
    near.on("data", noop);
    const streams: Duplex[] = [];
    const server = new SmuxSession(far, {
      onStream: (one) => streams.push(one),
      onClosed: noop,
      log: SILENT,
    });
    near.write(smux.encodeOpen(3));
    near.write(readsOn ? smux.encodeHalfEnd(3) : smux.encodeEnd(3));
    await until(() => streams.length === 1);
    const [stream] = streams;
    assert.ok(stream);
    await once(stream.resume(), "end");
    const isOpenAt = async (atMs: number): Promise<boolean> => {
      nowMs = atMs;
      stream.write("more");
      for (let turns = 0; turns < 10; turns++) await turn();
      return !stream.destroyed;
    };
    assert.deepEqual([await isOpenAt(900), await isOpenAt(1100)], [true, readsOn]);
    server.close(null);
  });
