import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { ReceivePart } from "#transport/quic/streams/receive-part.ts";
import type { FromThread } from "./messages.ts";
import { ThreadStream } from "./thread-stream.ts";

const ignore = (): void => {};
const COUNT = 200_000;
/** Each of them costs more than a hundred bytes. */
const MOST_PIECES = 4_096;

/** A stream that brings single bytes, each in a packet of its own. */
class Drip {
  readonly said: FromThread[] = [];
  readonly stream: QuicStream;
  readonly thread: ThreadStream;

  constructor() {
    const host = {
      sendBufferBytes: 1,
      onWritten: ignore,
      onConsumed: ignore,
      onReset: ignore,
      onStopped: ignore,
    };
    const parts = { send: null, receive: new ReceivePart(COUNT), abortCode: 0 };
    this.stream = new QuicStream(host, 0, parts);
    const post = (message: FromThread): void => void this.said.push(message);
    this.thread = new ThreadStream({ number: 1, post, onClosed: ignore }, this.stream, 0);
  }

  async send(): Promise<void> {
    for (let offset = 0; offset < COUNT; offset++) {
      this.stream.takeFrame(offset, Buffer.of(offset), offset === COUNT - 1, ignore);
      this.stream.handOver();
      if (offset % 1000 === 0) await setImmediate();
    }
  }
}

test("single bytes for a relay that does not read are few pieces, and none is lost", async () => {
  const drip = new Drip();
  const { thread, stream } = drip;
  assert.ok(thread.lend(0) !== null);
  await drip.send();
  const pieces = thread.waitingBytes + stream.readableLength;
  assert.ok(pieces < MOST_PIECES, `${pieces} pieces wait`);
  const into = Buffer.alloc(1000);
  let at = 0;
  for (let idle = 0; at < COUNT && idle < 10; idle++) {
    for (let size = thread.read(into, into.length); size > 0; size = thread.read(into, into.length)) {
      for (let index = 0; index < size; index++) assert.equal(into[index], at++ & 0xff);
      idle = 0;
    }
    await setImmediate();
  }
  assert.equal(at, COUNT);
});

test("single bytes for the main thread that does not read are few pieces", async () => {
  const drip = new Drip();
  drip.thread.onTook(0);
  await drip.send();
  const pieces = drip.said.length + drip.stream.readableLength;
  assert.ok(pieces < MOST_PIECES, `${pieces} pieces wait`);
});
