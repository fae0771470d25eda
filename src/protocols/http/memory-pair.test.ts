import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { memoryPair } from "./memory-pair.ts";

function quietPair() {
  const ends = memoryPair();
  for (const end of ends) end.on("error", () => {});
  return ends;
}

test("both directions, and the far end's half-close", async () => {
  const [near, far] = quietPair();
  near.end("question");
  let asked = "";
  far.on("data", (chunk: Buffer) => (asked += String(chunk)));
  await once(far, "end");
  assert.equal(asked, "question");
  far.end("answer");
  let answered = "";
  near.on("data", (chunk: Buffer) => (answered += String(chunk)));
  await once(near, "end");
  assert.equal(answered, "answer");
});

test("a writer waits for its reader: what is in between is bounded", async () => {
  const [near, far] = quietPair();
  const piece = Buffer.alloc(16 * 1024);
  let written = 0;
  while (near.write(piece)) written += piece.length;
  await new Promise(setImmediate);
  assert.equal(far.readableLength + near.writableLength <= 3 * 64 * 1024, true);
  assert.equal(near.writableNeedDrain, true);
  let read = 0;
  far.on("data", (chunk: Buffer) => (read += chunk.length));
  await once(near, "drain");
  assert.equal(read >= written, true);
});

test("an end that is destroyed before its last word destroys the other", async () => {
  const [near, far] = quietPair();
  near.destroy(new Error("dial failed"));
  await once(far, "close");
  assert.equal(far.destroyed, true);
  const [left, right] = quietPair();
  right.destroy();
  await once(left, "close");
});

test("last words are not taken back by closing", async () => {
  const [near, far] = quietPair();
  far.end("last words");
  await once(far, "finish");
  far.destroy();
  let text = "";
  near.on("data", (chunk: Buffer) => (text += String(chunk)));
  await once(near, "end");
  assert.equal(text, "last words");
});

test("an idle near end that is not read notices the end", async () => {
  const [near, far] = quietPair();
  near.on("data", () => {});
  near.removeAllListeners("data");
  far.end();
  await once(near, "close");
});

test("a writer whose reader is destroyed gets an error", async () => {
  const [near, far] = quietPair();
  while (far.write(Buffer.alloc(64 * 1024)));
  const told = once(far, "error");
  near.destroy();
  assert.equal(((await told) as [NodeJS.ErrnoException])[0].code, "EPIPE");
});
