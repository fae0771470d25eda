import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { test } from "node:test";
import { QuicStream, type StreamHost } from "./quic-stream.ts";
import { ReceivePart } from "./receive-part.ts";
import { SendPart } from "./send-part.ts";

const WINDOW_BYTES = 64 * 1024;
const PIECE = new Uint8Array(16 * 1024);

function openStream(): QuicStream {
  const host: StreamHost = {
    sendBufferBytes: WINDOW_BYTES,
    onWritten() {},
    onConsumed() {},
    onReset: (stream, code) => stream.send?.reset(code),
    onStopped() {},
  };
  const parts = { send: new SendPart(0, WINDOW_BYTES), receive: new ReceivePart(WINDOW_BYTES), abortCode: 1 };
  return new QuicStream(host, 0, parts);
}

test("a peer that reads no more does not keep a writer busy within one turn of the event loop", async () => {
  const stream = openStream();
  let written = 0;
  // As programs write that send as much as they can: until there is no room, and on when there is.
  const writeAll = (): void => {
    while (!stream.destroyed && stream.write(PIECE)) written++;
  };
  stream.on("drain", writeAll);
  writeAll();
  const before = written;
  stream.takeStop(7);
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.ok(written > before, "what is thrown away does not hold the writer up");
  stream.destroy();
});
